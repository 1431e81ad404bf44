// How one gets in, stays in, and gets out.

import assert from 'node:assert/strict'
import { Tab, URL_BASE, api, check, login } from './browser.mjs'

export async function firstPage({ browser, users }) {
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
  await check('a keyboard is enough', async () => {
    const tab = await Tab.as(browser, users.editor)
    const focused = () => tab.page.evaluate(() => document.activeElement.textContent || document.activeElement.getAttribute('aria-label'))
    await tab.page.evaluate(() => document.activeElement.blur())
    await tab.page.keyboard.press('Tab')
    assert.equal(await focused(), 'To the content')
    await tab.page.keyboard.press('Enter')
    assert.match(await focused(), /Welcome/)
    await tab.page.keyboard.press('Tab')
    await tab.page.keyboard.press('Enter')
    await tab.see('table, .empty')
    await tab.quiet()
    assert.equal(await focused(), await tab.text('h1'), 'a new page begins at its heading')
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

export async function sessions({ browser, users }) {
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
  await check('logging out ends the session', async () => {
    await tab.login(users.viewer)
    await tab.page.click('.top details summary')
    await tab.click('button', 'Log out')
    await tab.says('You are logged out')
    await tab.close()
  })
}
