// What is not allowed, or not there, is not shown.

import assert from 'node:assert/strict'
import { SCRIPT, Tab, api, check } from './browser.mjs'
import { taken } from './hostile.mjs'

/** By what the service says that roles allow, each entity has what can be done to it and no more. */
export async function offered({ user, tab, token, ids }) {
  await check(`${user.username}: what roles allow is offered, and nothing else`, async () => {
    const may = await api('GET', '/auth/me/permissions', { token })
    const allows = (collection, what) => may[collection.toLowerCase()]?.operations.includes(what) ?? false
    for (const [collection, id] of Object.entries(ids)) {
      await tab.go(`data/${collection}`)
      const tools = await tab.texts('.head .tools > *')
      assert.equal(tools.some((text) => text.startsWith('New ')), allows(collection, 'create'), `${collection}: a new one`)
      assert.equal(tools.includes('Import'), allows(collection, 'create'), `${collection}: import`)
      await tab.go(`data/${collection}/${id}`)
      const own = await tab.texts('.head .tools > *')
      for (const [what, text] of [['update', 'Edit'], ['delete', 'Delete'], ['history', 'History']]) {
        assert.equal(own.includes(text), allows(collection, what), `${collection}: ${what}`)
      }
      assert.equal(await tab.page.$('.empty.bad'), null)
    }
    const entries = await tab.texts('.side a')
    assert.equal(entries.includes('Invites'), user.isAdmin)
    assert.equal(entries.includes('Migrations'), user.username === 'superadmin')
    for (const name of ['Why not?', 'Webhooks']) assert.ok(!entries.includes(name), `${name}: the service has none`)
  })
}

/** A service of before does not tell what roles allow: then it is tried, and learnt. */
export async function learnt({ browser, users, description, example }) {
  await check('where nothing tells what roles allow, a refusal is learnt from', async () => {
    const { '/auth/me/permissions': gone, ...paths } = description.paths
    const { collection, single, label, right } = example.plain
    const tab = await Tab.open(browser)
    assert.ok(gone)
    await taken(tab, { '/openapi.json': () => ({ json: { ...description, paths } }) })
    await tab.load()
    await tab.login(users.viewer)
    await tab.go(`data/${collection}`)
    await tab.click('link', `New ${single}`)
    await tab.says(`New ${single}`, 'h1')
    await tab.fill(label, 'mine')
    for (const [field, text] of Object.entries(right)) await tab.fill(field, text)
    await tab.click('button', `Create ${single}`)
    await tab.says('Your roles do not allow this operation', '.summary')
    await tab.click('button', 'Cancel')
    await tab.shown()
    await tab.see('.head .tools > *')
    assert.deepEqual(await tab.texts('.head .tools > *'), ['Export'])
    await tab.close()
  })
}

/** What a service to come has is shown as it is described: here by answers of the test. */
export async function described({ browser, users, description }) {
  await check('"why not?" is shown where the service has it', async () => {
    const tab = await Tab.open(browser)
    const asked = []
    await taken(tab, {
      '/openapi.json': () => ({ json: { ...description, paths: { ...description.paths, '/manage/explain': { post: { operationId: 'explain' } } } } }),
      '/manage/explain': (request) => {
        asked.push(JSON.parse(request.postData()))
        return { json: { status: 403, reason: { role: SCRIPT } } }
      }
    })
    await tab.load()
    await tab.login(users.admin)
    await tab.click('link', 'Why not?')
    await tab.says('Why not?', 'h1')
    await tab.fill('target', '/api/v1/things')
    await tab.click('button', 'Why?')
    await tab.says('<script>', 'pre')
    assert.equal(asked[0].method, 'GET')
    assert.equal(asked[0].target, '/api/v1/things')
    assert.match(asked[0].userId, /^[0-9a-f-]{36}$/)
    await tab.audit('why not')
    await tab.close()
  })
  await check('sessions are shown where the service has them', async () => {
    const tab = await Tab.open(browser)
    const ended = []
    const of = (id, current) => ({ id, current, ip: '127.0.0.1', userAgent: SCRIPT, createdAt: '2026-01-31T12:00:00Z', lastUsedAt: null })
    const paths = { '/auth/me/sessions': { get: { operationId: 'a' }, delete: { operationId: 'b' } } }
    await taken(tab, {
      '/openapi.json': () => ({ json: { ...description, paths: { ...description.paths, ...paths } } }),
      '/auth/me/sessions': (request) => request.method() === 'GET'
        ? { json: { data: ended.length > 0 ? [of('one', true)] : [of('one', true), of('two', false)] } }
        : { status: 200, json: ended.push('all') },
      '/auth/me/sessions/two': (request) => ({ status: 200, json: ended.push(request.method()) })
    })
    await tab.load()
    await tab.login(users.viewer)
    await tab.go('account')
    await tab.says(SCRIPT, '[aria-label="Your sessions"] th')
    await tab.audit('sessions')
    await tab.click('button', 'End the session from 127.0.0.1')
    await tab.page.waitForFunction(() => document.querySelectorAll('[aria-label="Your sessions"] tbody tr').length === 1)
    assert.deepEqual(ended, ['DELETE'])
    await tab.close()
  })
  await check('a second factor is asked for where somebody has one', async () => {
    const tab = await Tab.open(browser)
    const asked = []
    let pair
    await taken(tab, {
      '/auth/login': () => ({ json: { mfaRequired: true, mfaToken: 'eam_1' } }),
      '/auth/login/totp': (request) => {
        asked.push(JSON.parse(request.postData()))
        return asked.length === 1 ? { status: 401, json: { errors: [{ code: 'LOGIN_FAILED', detail: SCRIPT }] } } : { json: pair }
      }
    })
    pair = await api('POST', '/auth/login', { body: { username: users.viewer.username, password: users.viewer.password } })
    await tab.load()
    await tab.fill('username', users.viewer.username)
    await tab.fill('password', users.viewer.password)
    await tab.click('button', 'Log in')
    await tab.says('Second factor', 'h1')
    await tab.audit('second factor')
    await tab.fill('code', '000000')
    await tab.click('button', 'Log in')
    await tab.says(SCRIPT, '.summary')
    assert.equal(await tab.page.evaluate(() => sessionStorage.length), 0, 'nothing is kept of half a login')
    await tab.fill('code', '123456')
    await tab.click('button', 'Log in')
    await tab.see('.frame h1')
    assert.deepEqual(asked[1], { mfaToken: 'eam_1', code: '123456' })
    await tab.close()
  })
  await check('a second factor is set up where the service has it', async () => {
    const tab = await Tab.open(browser)
    const did = []
    const paths = { '/auth/me/totp': { post: { operationId: 'a' }, delete: { operationId: 'b' } } }
    await taken(tab, {
      '/openapi.json': () => ({ json: { ...description, paths: { ...description.paths, ...paths } } }),
      '/auth/me/totp': (request) => ({ json: did.push(request.method()) && { secret: 'JBSWY3DP', uri: `otpauth://totp/${SCRIPT}` } }),
      '/auth/me/totp/confirm': (request) => ({ json: did.push(JSON.parse(request.postData()).code) && { recoveryCodes: ['one-1', 'two-2'] } })
    })
    await tab.load()
    await tab.login(users.viewer)
    await tab.go('account')
    await tab.click('button', 'Set one up')
    await tab.says('JBSWY3DP', 'dialog code')
    await tab.says('<script>', 'dialog code')
    await tab.click('button', 'I have kept it')
    await tab.fill('code', '123456')
    await tab.click('button', 'Switch it on')
    await tab.says('two-2', 'dialog code')
    await tab.click('button', 'I have kept it')
    assert.ok(!(await tab.page.content()).includes('JBSWY3DP'), 'it stays nowhere')
    await tab.click('button', 'Switch it off')
    await tab.fill('code', '654321')
    await tab.page.locator('[aria-label="Second factor"] .primary').click()
    await tab.says('The second factor is off')
    assert.deepEqual(did, ['POST', '123456', 'DELETE'])
    await tab.close()
  })
  await check('webhooks and their deliveries are shown where the service has them', async () => {
    const tab = await Tab.open(browser)
    const did = []
    const base = '/manage/tenants/{id}/webhooks'
    const list = { type: 'array', items: { type: 'string' } }
    const body = { required: true, content: { 'application/json': { schema: {
      type: 'object', required: ['url'], properties: { url: { type: 'string' }, types: list, actions: list, roles: list } } } } }
    const paths = {
      [base]: { get: { operationId: 'a' }, post: { operationId: 'b', requestBody: body } },
      [`${base}/{webhookId}`]: { patch: { operationId: 'c', requestBody: body }, delete: { operationId: 'd' } },
      [`${base}/{webhookId}/deliveries`]: { get: { operationId: 'e' } }
    }
    const hook = { id: 'h1', url: 'https://hook.example/<b>', types: ['invoices'], actions: ['ENTITY_CREATE'], roles: [] }
    const pagination = { number: 1, size: 25, totalPages: 1, totalRecords: 1 }
    await taken(tab, {
      '/openapi.json': () => ({ json: { ...description, paths: { ...description.paths, ...paths } } }),
      '/webhooks': (request) => request.method() === 'GET' ? { json: { data: [hook], meta: { pagination } } }
        : { status: 201, json: did.push(JSON.parse(request.postData())) && { ...hook, secret: 'whsec_1' } },
      '/deliveries': () => ({ json: { data: [{ id: 'd1', status: 'FAILED', error: SCRIPT, lastTriedAt: '2026-01-31T12:00:00Z' }] } }),
      '/deliveries/d1/retry': () => ({ json: did.push('retry') && {} })
    })
    await tab.load()
    await tab.login(users.admin)
    await tab.click('link', 'Webhooks')
    await tab.says('https://hook.example/<b>', 'th')
    await tab.click('button', 'New webhook')
    await tab.fill('url', 'https://hook.example/')
    await tab.fill('types', 'invoices')
    await tab.click('button', 'Create')
    await tab.says('whsec_1', 'dialog code')
    await tab.click('button', 'I have kept it')
    await tab.click('button', `Actions on ${hook.url}`)
    await tab.click('button', 'Deliveries')
    await tab.says(SCRIPT, 'dialog td')
    await tab.audit('deliveries')
    await tab.click('button', 'Send again')
    await tab.says('It is sent again', 'body')
    assert.deepEqual(did, [{ url: 'https://hook.example/', types: ['invoices'] }, 'retry'])
    await tab.close()
  })
}
