// How one gets in, stays in, and gets out.

import assert from 'node:assert/strict'
import { SLOWNESS, Tab, URL_BASE, api, check, login } from './browser.mjs'

/** More often at most while a busy machine keeps it from being as fast as it is. */
const TRIES = 5
const MOST_TRIES = 200

/** Notes when there is first something to read that can be used, and how much has moved by then. */
function usableAt() {
  globalThis.moved = { sum: 0 }
  new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => { globalThis.moved.sum += value }))
    .observe({ type: 'layout-shift', buffered: true })
  new MutationObserver((none, observer) => {
    if (!document.querySelector('h1') || document.querySelector('#page[aria-busy=true]')) return
    globalThis.usable = performance.now()
    observer.disconnect()
  }).observe(document, { subtree: true, childList: true, attributes: true })
}

export async function firstPage({ browser, users, example }) {
  await check('the address of the service leads to the login', async () => {
    const tab = await Tab.open(browser)
    const client = await tab.page.createCDPSession()
    let bytes = 0
    await client.send('Network.enable')
    client.on('Network.loadingFinished', ({ encodedDataLength }) => { bytes += encodedDataLength })
    await tab.load('/')
    assert.equal(tab.page.url(), `${URL_BASE}/console/`)
    assert.ok(bytes < 150 * 1024, `${bytes} bytes`)
    await tab.audit('login')
    await tab.fill('username', users.editor.username)
    await tab.fill('password', 'not the password')
    await tab.page.keyboard.press('Enter')
    await tab.says('wrong', '.summary').catch(() => tab.says('username or password', '.summary'))
    await tab.close()
  })
  await check('it is usable within 300 ms, in less than 150 KB, and nothing moves', async () => {
    const tab = await Tab.open(browser)
    const client = await tab.page.createCDPSession()
    let bytes = 0
    let counted = true
    await client.send('Network.enable')
    client.on('Network.loadingFinished', ({ encodedDataLength }) => { if (counted) bytes += encodedDataLength })
    await tab.page.evaluateOnNewDocument(usableAt)
    const times = { login: [], inside: [] }
    const slow = (all) => all.length < TRIES || (all.length < MOST_TRIES && Math.min(...all) >= 300 * SLOWNESS)
    while (slow(times.login)) {
      counted = times.login.length < TRIES
      await tab.load()
      times.login.push(await tab.page.evaluate(() => globalThis.usable))
    }
    counted = true
    await tab.login(users.editor)
    for (const path of [`data/${example.linked.collection}`, 'explorer', 'account']) await tab.go(path)
    assert.ok(bytes < 150 * 1024, `${bytes} bytes of all`)
    while (slow(times.inside)) {
      await tab.page.reload()
      await tab.see('.frame h1')
      times.inside.push(await tab.page.evaluate(() => globalThis.usable))
    }
    for (const [what, all] of Object.entries(times)) {
      assert.ok(Math.min(...all) < 300 * SLOWNESS, `${what}: ${all.map(Math.round)} ms`)
    }
    assert.ok(await tab.page.evaluate(() => globalThis.moved.sum) < 0.01, 'while it loads')
    await tab.close()
  })
  await check('a temporary password has to be changed', async () => {
    const tab = await Tab.open(browser)
    await tab.load()
    await tab.fill('username', users.newcomer.username)
    await tab.fill('password', users.newcomer.password)
    await tab.click('button', 'Log in')
    await tab.says('A new password is due', 'h1')
    await tab.fill('newPassword', 'correct horse battery')
    await tab.fill('again', 'correct horse batter')
    await tab.click('button', 'Change the password')
    await tab.says('not the same', '.fault')
    await tab.fill('again', 'correct horse battery')
    await tab.click('button', 'Change the password')
    await tab.see('.frame h1')
    await tab.close()
  })
}

/** What the console does each half minute it does a hundred times as often. */
function faster() {
  const before = globalThis.setInterval
  globalThis.setInterval = (work, millis) => before(work, millis / 100)
}

export async function sessions({ browser, users, tenant, example }) {
  const tab = await Tab.as(browser, users.viewer)
  await check('loading again keeps one logged in', async () => {
    await tab.page.reload()
    await tab.see('.frame h1')
    const stored = await tab.page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))
    assert.doesNotMatch(stored, /eyJ/, 'no access token is stored')
    assert.equal(await tab.page.evaluate(() => Object.keys(localStorage).filter((name) => /refresh/.test(name)).length), 0)
  })
  await check('requests that are refused together renew the session once', async () => {
    let refused = 0
    let renewed = 0
    await tab.page.setRequestInterception(true)
    const answer = (request) => {
      if (request.url().endsWith('/auth/refresh')) renewed++
      if (/\/auth\/me$/.test(request.url()) && refused < 4) {
        refused++
        request.respond({ status: 401, contentType: 'application/json', body: '{"errors":[{"code":"INVALID_CREDENTIAL"}]}' })
      } else request.continue()
    }
    tab.page.on('request', answer)
    const names = await tab.page.evaluate(async () => {
      const { get } = await import('/console/api.js')
      const all = await Promise.all([1, 2, 3, 4].map(() => get('/auth/me')))
      return all.map(({ username }) => username)
    })
    tab.page.off('request', answer)
    await tab.page.setRequestInterception(false)
    assert.deepEqual(names, Array(4).fill(users.viewer.username))
    assert.equal(renewed, 1)
  })
  await check('a duplicated tab does not use the token of the first', async () => {
    const copy = await tab.context.newPage()
    const stored = await tab.page.evaluate(() => ({ ...sessionStorage }))
    await copy.goto(`${URL_BASE}/console/icon.svg`)
    await copy.evaluate((items) => Object.entries(items).forEach(([name, value]) => sessionStorage.setItem(name, value)), stored)
    await copy.goto(`${URL_BASE}/console/`)
    await copy.waitForSelector('[name=username]', { visible: true })
    await copy.close()
    await tab.page.reload()
    await tab.see('.frame h1')
  })
  await check('a session that ends elsewhere ends here', async () => {
    const token = await login(users.viewer)
    await api('POST', '/auth/change-password', { token, body: { currentPassword: users.viewer.password, newPassword: 'another horse battery' } })
    users.viewer.password = 'another horse battery'
    await tab.page.evaluate(() => { location.hash = '#/account' })
    await tab.says('Your session has ended')
    assert.equal(await tab.page.evaluate(() => sessionStorage.length), 0)
  })
  await check('other roles count, also while nobody does anything', async () => {
    const idle = await Tab.open(browser)
    await idle.page.evaluateOnNewDocument(faster)
    await idle.load()
    await idle.login(users.viewer)
    await idle.go(`data/${example.plain.collection}`)
    const path = `/manage/tenants/${tenant}/users/${users.viewer.id}/roles`
    const token = await login(users.superadmin)
    const { roles } = await api('GET', '/auth/me', { token: await login(users.viewer) })
    await api('PUT', path, { token, body: { roles: [] } })
    const entry = `.side a[href="#/data/${example.plain.collection}"]`
    await idle.gone(entry)
    await api('PUT', path, { token, body: { roles } })
    await idle.see(entry)
    await idle.close()
  })
  await check('a service that is away is told, and tried again', async () => {
    const idle = await Tab.as(browser, users.viewer)
    // a page whose module is not there yet, then one of which only the data is away
    for (const collection of [example.plain.collection, example.linked.collection]) {
      await idle.page.setOfflineMode(true)
      await idle.go(`data/${collection}`)
      await idle.says('cannot be reached', '[role=alert]')
      await idle.page.setOfflineMode(false)
      await idle.click('button', 'Try again')
      await idle.see('table')
    }
    await idle.close()
  })
  await check('a session that ends elsewhere ends here, also while nobody does anything', async () => {
    const idle = await Tab.open(browser)
    await idle.page.evaluateOnNewDocument(faster)
    await idle.load()
    await idle.login(users.viewer)
    const token = await login(users.viewer)
    await api('POST', '/auth/change-password', { token, body: { currentPassword: users.viewer.password, newPassword: 'the third horse battery' } })
    users.viewer.password = 'the third horse battery'
    await idle.says('Your session has ended')
    await idle.close()
  })
  await check('logging out ends the session', async () => {
    await tab.login(users.viewer)
    await tab.page.click('.top details summary')
    await tab.click('button', 'Log out')
    await tab.says('You are logged out')
    await tab.close()
  })
}

/** What is one's own: keys, and a password that is wrong. */
export async function account({ user, tab }) {
  const dialog = 'dialog code'
  await check(`${user.username}: keys are made, shown once, and disabled`, async () => {
    await tab.go('account', 'Own account')
    await tab.click('button', 'New key')
    await tab.fill('name', 'laptop')
    await tab.page.$eval('[name=expiresAt]', (node) => { node.value = '2099-01-01T00:00:00' })
    await tab.click('button', 'Create')
    await tab.says('eap_', dialog)
    const key = await tab.text(dialog)
    await tab.audit('a secret')
    await tab.click('button', 'I have kept it')
    const answer = await fetch(`${URL_BASE}/auth/me`, { headers: { 'X-API-Key': key } })
    assert.equal((await answer.json()).username, user.username)
    assert.ok(!(await tab.page.content()).includes(key), 'it stays nowhere')
    await tab.click('button', 'Disable laptop')
    await tab.page.locator('dialog .danger').click()
    await tab.says('DISABLED')
  })
  await check(`${user.username}: a wrong password is told at its field`, async () => {
    await tab.fill('currentPassword', 'wrong wrong wrong')
    await tab.fill('newPassword', 'correct horse battery')
    await tab.fill('again', 'correct horse battery')
    await tab.click('button', 'Change the password')
    await tab.says('current password is wrong', '.fault')
  })
  await check(`${user.username}: the profile is one's own`, async () => {
    await tab.fill('profile', '{"office": "12345678901234567890.50"')
    await tab.page.locator('[aria-label=Profile] .primary').click()
    await tab.says('This is no JSON', '.fault')
    await tab.fill('profile', '{"office": 12345678901234567890.50}')
    await tab.page.locator('[aria-label=Profile] .primary').click()
    await tab.says('Profile saved')
    await tab.go('')
    await tab.go('account')
    assert.match(await tab.page.$eval('[name=profile]', (node) => node.value), /12345678901234567890\.5/)
    await tab.close()
  })
}
