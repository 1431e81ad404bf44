// The console in a browser, as four kinds of user.
//
// CONSOLE_SETUP is JSON: { users: { superadmin, admin, editor, viewer,
// newcomer }, tenant, generic }, each user with username and password.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Tab, URL_BASE, api, check, launch, login, skip } from './browser.mjs'

const { users, tenant, isBilling } = JSON.parse(process.env.CONSOLE_SETUP)
const SCRIPT = '<img src=x onerror="window.struck=1"><script>window.struck=1</script>'
const browser = await launch()
const description = await api('GET', '/api/v1/openapi.json')
const collections = Object.keys(description.paths).map((path) => /^\/api\/v1\/(\w+)$/.exec(path)?.[1])
  .filter((name) => name && name !== 'operations')

/** Every page there is: shown, without serious findings, in both colours and narrow. */
async function everyPage(user, pages) {
  const tab = await Tab.as(browser, user)
  for (const path of pages) {
    await check(`${user.username}: ${path || 'the beginning'}`, async () => {
      await tab.go(path)
      const title = await tab.text('h1').catch(() => '')
      assert.notEqual(title, '', 'it has a heading')
      assert.equal(await tab.page.$('.empty.bad'), null, 'nothing went wrong')
      await tab.audit('light')
      await tab.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
      await tab.audit('dark')
      await tab.page.emulateMediaFeatures([])
      await tab.page.setViewport({ width: 360, height: 740 })
      await tab.fits()
      await tab.page.setViewport({ width: 1280, height: 800 })
    })
  }
  await check(`${user.username}: nothing was refused by the policy of content`, () => tab.close())
}

async function firstPage() {
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

async function sessions() {
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

async function data() {
  const tab = await Tab.as(browser, users.editor)
  const token = await login(users.editor)
  await check('a form tells faults at their fields, and finds what it refers to', async () => {
    await tab.go('data/customers/new', 'New customer')
    await tab.fill('email', 'no address')
    await tab.click('button', 'Create customer')
    await tab.see('[name=name][aria-invalid]')
    await tab.see('[name=email][aria-invalid]')
    await tab.fill('name', SCRIPT)
    await tab.fill('email', 'a@b.example')
    await tab.fill('city', SCRIPT)
    await tab.click('button', 'Create customer')
    await tab.says(SCRIPT, 'h1')
    await tab.go('data/invoices/new', 'New invoice')
    await tab.fill('number', 'T-1')
    await tab.fill('total', '12345678901.10')
    await tab.fill('note', SCRIPT)
    await tab.fill('customer', '<img')
    await tab.see('[role=option][id]')
    await tab.page.keyboard.press('ArrowDown')
    await tab.page.keyboard.press('Enter')
    await tab.says(SCRIPT, '.chosen')
    await tab.click('button', 'Create invoice')
    await tab.says('T-1', 'h1')
    await tab.says('12,345,678,901.10')
  })
  await check('stored script stays text', async () => {
    for (const path of ['data/customers', 'data/invoices', 'audit', 'declarations']) await tab.go(path)
    await tab.go('data/invoices')
    await tab.says(SCRIPT, 'td')
    assert.equal(await tab.page.evaluate(() => globalThis.struck), undefined)
    assert.equal(await tab.page.$('main img, main script'), null)
  })
  await check('a filter is built, and shown as RSQL', async () => {
    await tab.go('data/invoices', 'Invoices')
    await tab.click('button', 'Filter')
    await tab.click('button', 'Add a condition')
    await tab.choose('[aria-label=Field]', 'status')
    await tab.choose('[aria-label="Value of Status"]', 'DRAFT')
    assert.equal(await tab.page.$eval('.panel textarea', (node) => node.value), 'status==DRAFT')
    await tab.click('button', 'Apply')
    await tab.says('status==DRAFT', 'code.filter')
    assert.deepEqual([...new Set(await tab.texts('td .chip'))], ['DRAFT'])
    await tab.click('button', 'Total')
    await tab.see('th[aria-sort=ascending]')
    await tab.page.locator('summary ::-p-text(Columns)').click()
    await tab.click('checkbox', 'Note')
    await tab.says('Note', 'thead')
    await tab.go('data/invoices?filter=nonsense%3D%3D1')
    await tab.says('unknown attribute', '[role=alert]')
  })
  await check('a conflict shows both versions', async () => {
    const { data: [invoice] } = await api('GET', '/api/v1/invoices?filter=number==T-1', { token })
    await tab.go(`data/invoices/${invoice.id}`, 'T-1')
    await tab.click('button', 'Edit')
    await tab.fill('currency', 'DKK')
    await api('PATCH', `/api/v1/invoices/${invoice.id}`, { token, body: { data: { type: 'invoices', id: invoice.id, attributes: { note: 'faster' }, meta: { version: invoice.meta.version } } } })
    await tab.click('button', 'Save')
    await tab.says('Somebody else has changed this', 'dialog')
    await tab.says('faster', 'dialog .theirs')
    await tab.says('DKK', 'dialog .mine')
    await tab.audit('the dialog')
    await tab.click('button', 'Save mine over it')
    await tab.gone('dialog')
    await tab.says('DKK', 'dd')
    await tab.says('faster', 'dd')
  })
  await check('members of a relationship are put in and taken out', async () => {
    const { data: tag } = await api('POST', '/api/v1/tags', { token, body: { data: { type: 'tags', attributes: { name: SCRIPT.slice(0, 50) } } } })
    const { data: [invoice] } = await api('GET', '/api/v1/invoices?filter=number==T-1', { token })
    await tab.go(`data/invoices/${invoice.id}`, 'T-1')
    const box = await tab.see('[aria-label="Add to tags"]')
    await box.type('onerror')
    await tab.see('[role=option][id]')
    await tab.page.keyboard.press('ArrowDown')
    await tab.page.keyboard.press('Enter')
    await tab.click('button', 'Add')
    await tab.says('onerror', '[aria-label=Tags] td')
    const linkage = async () => (await api('GET', `/api/v1/invoices/${invoice.id}/relationships/tags`, { token })).data.map(({ id }) => id)
    assert.deepEqual(await linkage(), [tag.id])
    await tab.page.locator('[aria-label=Tags] td button').click()
    await tab.says('No tags yet')
    assert.deepEqual(await linkage(), [])
  })
  await check('rows go out as CSV and come in again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'console-'))
    const client = await tab.page.createCDPSession()
    await client.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: folder, browserContextId: tab.context.id })
    await tab.go('data/customers', 'Customers')
    await tab.click('button', 'Export')
    await tab.click('button', 'As CSV')
    await tab.says('saved')
    for (let i = 0; i < 100 && !readdirSync(folder).includes('customers.csv'); i++) await new Promise((resolve) => setTimeout(resolve, 50))
    const saved = readFileSync(join(folder, 'customers.csv'), 'utf8')
    assert.match(saved, /^id,name,/)
    assert.ok(saved.includes(`"${SCRIPT.replaceAll('"', '""')}"`), 'quoted as CSV is')
    const file = join(folder, 'in.csv')
    writeFileSync(file, 'name,city,active,creditLimit\r\n"Nine, & sons","He said ""no""",true,10.50\r\nTen,,false,\r\n')
    const bring = async () => {
      await tab.click('button', 'Import')
      const input = await tab.see('input[type=file]')
      await input.uploadFile(file)
      await tab.page.locator('dialog button.primary').click()
    }
    await bring()
    await tab.says('2 rows imported')
    await tab.says('Nine, & sons', 'td')
    writeFileSync(file, 'name,creditLimit\r\nEleven,-1\r\n')
    await bring()
    await tab.says('Row 1, creditLimit', 'dialog')
    await tab.page.locator('dialog ::-p-text(Close)').click()
  })
  await check('deleting asks first', async () => {
    const { data: [one] } = await api('GET', '/api/v1/customers?filter=name==Ten', { token })
    await tab.go(`data/customers/${one.id}`, 'Ten')
    await tab.click('button', 'Delete')
    await tab.says('Delete Ten?', 'dialog')
    await tab.page.keyboard.press('Escape')
    await tab.gone('dialog')
    await tab.click('button', 'Delete')
    await tab.page.locator('dialog .danger').click()
    await tab.says('Ten deleted')
    await tab.says('Customers', 'h1')
  })
  await check('an address with strange ids leads nowhere', async () => {
    for (const id of ['..', '../../manage/tenants', '%2e%2e', '<b>', "a'b"]) {
      await tab.go(`data/customers/${encodeURIComponent(id)}`)
      await tab.see('.empty')
    }
  })
  await check('the explorer sends requests, and tells them for curl', async () => {
    await tab.go('explorer/listTags', 'Explorer')
    await tab.fill('filter', "name=ilike='%onerror%'")
    await tab.fill('fields', '[tags]=name')
    await tab.click('button', 'Send')
    await tab.says('200', '.chip')
    await tab.says('onerror', 'pre.answer')
    await tab.says('-H "Authorization: Bearer $TOKEN"', 'pre')
    assert.doesNotMatch(await tab.text('body'), /eyJ/)
  })
  await check('keys are made, shown once, and disabled', async () => {
    await tab.go('account', 'Own account')
    await tab.click('button', 'New key')
    await tab.fill('name', 'laptop')
    await tab.fill('expiresAt', '')
    await tab.page.$eval('[name=expiresAt]', (node) => { node.value = '2099-01-01T00:00:00' })
    await tab.click('button', 'Create')
    await tab.says('eap_', 'dialog code')
    await tab.click('button', 'I have kept it')
    await tab.click('button', 'Disable laptop')
    await tab.page.locator('dialog .danger').click()
    await tab.says('DISABLED')
    await tab.fill('currentPassword', 'wrong wrong wrong')
    await tab.fill('newPassword', 'correct horse battery')
    await tab.fill('again', 'correct horse battery')
    await tab.click('button', 'Change the password')
    await tab.says('current password is wrong', '.fault')
  })
  await check('the editor: no failure of a script, no violation', () => tab.close())
}

async function administration() {
  const tab = await Tab.as(browser, users.admin)
  await check('users are made, given roles, and disabled', async () => {
    await tab.go('manage/users', 'Users')
    await tab.click('button', 'New user')
    await tab.fill('username', 'made-here')
    await tab.fill('roles', 'Viewer')
    await tab.click('button', 'Create')
    await tab.says('Temporary password', 'dialog')
    await tab.click('button', 'I have kept it')
    await tab.click('button', 'Actions on made-here')
    await tab.click('button', 'Roles')
    await tab.fill('roles', 'Nobody')
    await tab.click('button', 'Save')
    await tab.see('[name=roles][aria-invalid]')
    await tab.fill('roles', 'Sales')
    await tab.click('button', 'Save')
    await tab.says('Sales', 'td')
    await tab.click('button', 'Actions on made-here')
    await tab.click('button', 'Disable')
    await tab.page.locator('dialog .danger').click()
    await tab.says('DISABLED', 'td')
  })
  await check('invites and service accounts show their secret once', async () => {
    await tab.go('manage/invites', 'Invites')
    await tab.click('button', 'New invite')
    await tab.fill('email', 'i@acme.example')
    await tab.fill('username', 'invited')
    await tab.fill('roles', 'Viewer')
    await tab.click('button', 'Create')
    await tab.says('eai_', 'dialog')
    await tab.click('button', 'I have kept it')
    await tab.go('manage/service-accounts', 'Service accounts')
    await tab.click('button', 'New service account')
    await tab.fill('name', SCRIPT)
    await tab.click('button', 'Create')
    await tab.says('eas_', 'dialog')
    await tab.click('button', 'I have kept it')
    await tab.says(SCRIPT, 'th')
  })
  await check('the audit log is filtered and followed', async () => {
    await tab.go('audit?action=USER_CREATED', 'Audit log')
    assert.deepEqual([...new Set(await tab.texts('td code'))], ['USER_CREATED'])
    const before = (await tab.page.$$('tbody tr')).length
    await tab.click('checkbox', 'Follow what comes in')
    const token = await login(users.admin)
    await api('POST', `/manage/tenants/${tenant}/users`, { token, body: { username: 'followed' } })
    await tab.page.waitForFunction((before) => document.querySelectorAll('tbody tr').length > before, {}, before)
  })
  await check('settings are inherited or set', async () => {
    await tab.go('manage/settings', 'Settings')
    await tab.choose('[name=enabled]', 'false')
    await tab.click('button', 'Save')
    await tab.says('Saved')
  })
  await check('the administrator: no failure of a script, no violation', () => tab.close())
}

async function superadmin() {
  const tab = await Tab.as(browser, users.superadmin)
  await check('a SuperAdmin chooses the tenant', async () => {
    await tab.go('data/customers')
    await tab.says('Choose the tenant', '.empty')
    await tab.choose('.top select', tenant)
    await tab.quiet()
    await tab.see('table')
    await tab.page.reload()
    await tab.see('table')
  })
  await check('tenants are made with their administrator, and deleted', async () => {
    await tab.go('manage/tenants', 'Tenants')
    await tab.click('button', 'New tenant')
    await tab.fill('name', 'Gone soon')
    await tab.fill('slug', 'gone-soon')
    await tab.fill('admin.username', 'gone-admin')
    await tab.click('button', 'Create')
    await tab.says('of gone-admin', 'dialog')
    await tab.click('button', 'I have kept it')
    await tab.click('button', 'Actions on Gone soon')
    await tab.click('button', 'Delete')
    await tab.page.locator('dialog .danger').click()
    await tab.says('Done.')
    await tab.page.waitForFunction(() => ![...document.querySelectorAll('th')].some((node) => node.innerText === 'Gone soon'))
  })
  await check('the SuperAdmin: no failure of a script, no violation', () => tab.close())
}

/** What only some services have. */
async function restoring() {
  const name = collections.find((one) => description.paths[`/api/v1/${one}/{id}/restore`])
  if (!name) return skip('what was deleted is restored', 'the description has no restore')
  skip('what was deleted is restored', `see t/console/whole for ${name}`)
}

const data1 = ['', ...collections.map((name) => `data/${name}`), ...collections.slice(0, 3).map((name) => `data/${name}/new`), 'declarations', 'explorer/listOwnApiKeys', 'account', 'system/health']
await everyPage(users.viewer, ['', `data/${collections[0]}`, 'account'])
await everyPage(users.editor, data1)
await everyPage(users.admin, ['manage/users', 'manage/invites', 'manage/service-accounts', 'manage/personal-api-keys', 'manage/settings', 'audit'])
await everyPage(users.superadmin, ['manage/tenants', 'audit', 'system/migrations', 'manage/settings'])
if (isBilling) {
  await firstPage()
  await data()
  await administration()
  await superadmin()
  await sessions()
}
await restoring()
await browser.close()
console.log(JSON.stringify({ done: true }))
