// Script in all that the service may say: stored texts, names of people and
// things, the description itself, answers to what is refused.

import assert from 'node:assert/strict'
import { SCRIPT, Tab, api, check } from './browser.mjs'

const untouched = async (tab, path) => {
  assert.equal(await tab.page.evaluate(() => globalThis.struck), undefined, path)
  assert.equal(await tab.page.$('#root img, #root script, #root iframe, dialog img, dialog script'), null, path)
  const links = await tab.page.$$eval('a[href]', (nodes) => nodes.map((node) => node.getAttribute('href')))
  assert.deepEqual(links.filter((href) => !href.startsWith('#')), [], `${path}: links lead into the console`)
}

/** Each text of each entity holds script: tables with all columns, pages, forms, history, the log. */
export async function stored({ users, admin, ids }) {
  await check('script in every text of every entity stays text', async () => {
    for (const [collection, id] of Object.entries(ids)) {
      const { attributes } = (await api('GET', `/api/v1/${collection}/${id}`, { token: admin.token })).data
      const columns = Object.keys(attributes)
      for (const path of [`data/${collection}?columns=${columns}`, `data/${collection}/${id}`, `data/${collection}/${id}/history`]) {
        await admin.tab.go(path)
        await untouched(admin.tab, path)
      }
      await admin.tab.go(`data/${collection}/${id}`)
      await admin.tab.says('<img', '#page')
      await admin.tab.click('button', 'Edit')
      await untouched(admin.tab, `${collection}, its form`)
    }
    for (const path of ['', 'audit', 'declarations', 'manage/users', 'account']) {
      await admin.tab.go(path)
      await untouched(admin.tab, path)
    }
  })
  await check('script in the names of people and things stays text', async () => {
    await api('PATCH', '/auth/me', { token: admin.token, body: { profile: { displayName: SCRIPT } } })
    const tab = await Tab.as(admin.browser, users.admin)
    await tab.says(`Welcome, ${SCRIPT}`, 'h1')
    await untouched(tab, 'the beginning')
    await tab.close()
  })
}

/** A description that is hostile: it comes from the service, but manifests are written by people. */
function poisoned(description) {
  const walk = (of, key) => {
    if (Array.isArray(of)) return key === 'enum' ? [...of, SCRIPT] : of.map((one) => walk(one))
    if (of === null || typeof of !== 'object') return ['description', 'summary', 'pattern', 'title'].includes(key) ? SCRIPT : of
    return Object.fromEntries(Object.entries(of).map(([name, one]) => [name, walk(one, name)]))
  }
  const said = walk(description)
  said.paths['/manage/tenants/{id}/"><script>window.struck=1</script>'] = { get: { operationId: SCRIPT, summary: SCRIPT, tags: [SCRIPT] } }
  return said
}

/** Answers of the service are taken over by a test: "answers" has functions of a request by the end of its path. */
export async function taken(tab, answers) {
  await tab.page.setRequestInterception(true)
  tab.page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    const found = Object.entries(answers).find(([end]) => pathname.endsWith(end))
    const answer = found?.[1](request)
    if (!answer) return request.continue()
    const { status = 200, json, headers } = answer
    return request.respond({ status, contentType: 'application/json', headers, body: JSON.stringify(json) })
  })
}

export async function described({ browser, users, description, example }) {
  const { plain, linked } = example
  await check('script in the description stays text', async () => {
    const tab = await Tab.open(browser)
    await taken(tab, { '/openapi.json': () => ({ json: poisoned(description) }) })
    await tab.load()
    await tab.login(users.editor)
    for (const path of ['', `data/${plain.collection}`, `data/${plain.collection}/new`, `data/${linked.collection}/new`, 'declarations',
      'explorer', `explorer/${encodeURIComponent(SCRIPT)}`, 'explorer/listOwnApiKeys']) {
      await tab.go(path)
      await untouched(tab, path)
    }
    await tab.says(SCRIPT.slice(0, 20), '.detail h2, #page')
    await tab.close()
  })
  await check('script in a refusal stays text', async () => {
    const tab = await Tab.as(browser, users.editor)
    const faults = [{ status: '400', code: SCRIPT, id: SCRIPT, title: SCRIPT, detail: SCRIPT, source: { pointer: '/data/attributes/__proto__' } },
      { status: '400', detail: SCRIPT, source: { pointer: `/data/attributes/${plain.label}` } }]
    await taken(tab, { [`/${plain.collection}`]: (request) => request.method() === 'POST' && { status: 400, json: { errors: faults } } })
    await tab.go(`data/${plain.collection}/new`)
    await tab.fill(plain.label, 'x')
    await tab.page.locator('form .primary').click()
    await tab.says(SCRIPT, '.summary')
    await tab.says(SCRIPT, '.fault')
    await untouched(tab, 'a refused form')
    await tab.close()
  })
  await check('an address with strange parts leads nowhere', async () => {
    const tab = await Tab.as(browser, users.editor)
    const asked = []
    tab.page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    for (const id of ['..', '../../manage/tenants', '%2e%2e', '<b>', "a'b", '?x=1', '__proto__']) {
      await tab.go(`data/${plain.collection}/${encodeURIComponent(id)}`)
      await tab.see('.empty')
    }
    for (const path of ['constructor', '__proto__', 'toString', 'data/__proto__', 'manage/constructor', 'javascript:alert(1)', '%', '%E0%A4%A']) {
      await tab.go(path)
      await tab.see('h1')
    }
    assert.deepEqual(asked.filter((path) => path.startsWith('/manage')), [])
    await tab.close()
  })
}
