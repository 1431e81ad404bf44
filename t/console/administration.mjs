// Administration, by a TenantAdmin and by the SuperAdmin.

import assert from 'node:assert/strict'
import { SCRIPT, Tab, api, check, login } from './browser.mjs'

export async function administration({ browser, users, tenant }) {
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

export async function superadmin({ browser, users, tenant }) {
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

/** What is described is shown: here by a description that says more than is there. */
export async function described({ browser, users, description }) {
  const tab = await Tab.open(browser)
  await check('"why not?" is shown where the service has it', async () => {
    const asked = []
    await tab.page.setRequestInterception(true)
    tab.page.on('request', (request) => {
      const answer = (json) => request.respond({ status: 200, contentType: 'application/json', body: JSON.stringify(json) })
      if (request.url().endsWith('/openapi.json')) answer({ ...description, paths: { ...description.paths, '/manage/explain': { post: { operationId: 'explain' } } } })
      else if (request.url().endsWith('/manage/explain')) {
        asked.push(JSON.parse(request.postData()))
        answer({ status: 403, reason: { role: SCRIPT } })
      } else request.continue()
    })
    await tab.load()
    await tab.login(users.admin)
    await tab.click('link', 'Why not?')
    await tab.says('Why not?', 'h1')
    await tab.fill('target', '/api/v1/customers')
    await tab.click('button', 'Why?')
    await tab.says('<script>', 'pre')
    assert.equal(asked[0].method, 'GET')
    assert.equal(asked[0].target, '/api/v1/customers')
    assert.match(asked[0].userId, /^[0-9a-f-]{36}$/)
    await tab.audit('why not')
    await tab.close()
  })
}
