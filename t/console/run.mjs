// The console in a browser, as four kinds of user.
//
// CONSOLE_SETUP is JSON: { users: { superadmin, admin, editor, viewer,
// newcomer }, tenant, isBilling }, each user with username and password.

import assert from 'node:assert/strict'
import { administration, described, superadmin } from './administration.mjs'
import { Tab, api, check, launch } from './browser.mjs'
import { data } from './data.mjs'
import { past, restoring } from './past.mjs'
import { firstPage, sessions } from './sessions.mjs'

const { users, tenant, isBilling } = JSON.parse(process.env.CONSOLE_SETUP)
const browser = await launch()
const description = await api('GET', '/api/v1/openapi.json')
const collections = Object.keys(description.paths).map((path) => /^\/api\/v1\/(\w+)$/.exec(path)?.[1])
  .filter((name) => name && name !== 'operations')
const made = collections.filter((name) => description.paths[`/api/v1/${name}`].post)

/** Every page there is: shown, without serious findings, in both colours and narrow; others are alike, and only shown. */
async function everyPage(user, pages, others = []) {
  const tab = await Tab.as(browser, user)
  await tab.shifts()
  await check(`${user.username}: nothing moves once it is shown`, async () => {
    for (const path of [...pages, ...others]) {
      await tab.go(path)
      assert.equal(await tab.page.$('.empty.bad'), null, path)
      const moved = await tab.shifts()
      assert.ok(moved < 0.05, `${path}: ${moved}`)
    }
  })
  for (const path of pages) {
    await check(`${user.username}: ${path || 'the beginning'}`, async () => {
      await tab.go(path)
      const title = await tab.text('h1').catch(() => '')
      assert.notEqual(title, '', 'it has a heading')
      assert.equal(await tab.page.$('.empty.bad'), null, 'nothing went wrong')
      await tab.audit('light')
      await tab.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
      await tab.audit('dark', ['color-contrast'])
      await tab.page.emulateMediaFeatures([])
      await tab.page.setViewport({ width: 360, height: 740 })
      await tab.fits()
      await tab.page.setViewport({ width: 1280, height: 800 })
    })
  }
  await check(`${user.username}: nothing was refused by the policy of content`, () => tab.close())
}

const setup = { browser, users, tenant, description }

await everyPage(users.viewer, ['', `data/${collections[0]}`, 'account'])
await everyPage(users.editor, ['', ...collections.slice(1, 3).map((name) => `data/${name}`), ...made.slice(1, 3).map((name) => `data/${name}/new`),
  'declarations', 'explorer/listOwnApiKeys', 'account', 'system/health'], collections.map((name) => `data/${name}`))
if (isBilling) {
  await everyPage(users.admin, ['manage/users', 'manage/invites', 'manage/service-accounts', 'manage/personal-api-keys', 'manage/settings', 'audit'])
  await everyPage(users.superadmin, ['manage/tenants', 'audit', 'system/migrations', 'manage/settings'])
  await firstPage(setup)
  await data(setup)
  await administration(setup)
  await superadmin(setup)
  await described(setup)
}
await past(setup)
await restoring(setup)
if (isBilling) await sessions(setup)
await browser.close()
console.log(JSON.stringify({ done: true }))
