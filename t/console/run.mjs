// The console in a browser, as four kinds of user.
//
// CONSOLE_SETUP is JSON: { users: { superadmin, admin, editor, viewer,
// newcomer }, tenant, example }, each user with username and password.
// CONSOLE_PARTS names the parts that are run: all of them, without it.

import assert from 'node:assert/strict'
import { administration, superadmin } from './administration.mjs'
import * as allowed from './allowed.mjs'
import { Tab, api, check, launch, login } from './browser.mjs'
import { EXAMPLES, makeAll } from './examples.mjs'
import { explorer } from './explorer.mjs'
import { deleting, forms, hasty, leaving, linked, members, oneOf } from './forms.mjs'
import * as hostile from './hostile.mjs'
import { keyboard } from './keyboard.mjs'
import { notRestoring, past, restoring } from './past.mjs'
import { account, firstPage, sessions } from './sessions.mjs'
import { builder, files, manyRows, tables } from './tables.mjs'

const { users, tenant, example: name } = JSON.parse(process.env.CONSOLE_SETUP)
const browser = await launch()
const description = await api('GET', '/api/v1/openapi.json')
users.admin.isAdmin = users.superadmin.isAdmin = true
users.editor.isAdmin = users.viewer.isAdmin = false
const everybody = [users.editor, users.admin, users.superadmin, users.viewer]
const example = { ...EXAMPLES[name], writers: new Set(everybody.slice(0, 3)) }
const setup = { browser, users, tenant, description, example }

setup.ids = await makeAll(api, await login(users.editor), example.scripts)
await manyRows(await login(users.editor), example, setup.ids)

/** One who is logged in, and works in the tenant. */
async function of(user) {
  const token = await login(user)
  const tab = await Tab.as(browser, user)
  api.tenants.set(token, user === users.superadmin ? tenant : undefined)
  if (user === users.superadmin) {
    await tab.choose('.top select', tenant)
    await tab.quiet()
  }
  return { ...setup, user, token, tab }
}

/** Every page there is: shown, without serious findings, in both colours and narrow. */
async function everyPage({ user, tab }, pages) {
  await tab.shifts()
  await check(`${user.username}: nothing moves once it is shown`, async () => {
    for (const path of pages) {
      await tab.go(path)
      assert.equal(await tab.page.$('.empty.bad'), null, path)
      const moved = await tab.shifts()
      assert.ok(moved < 0.02, `${path}: ${moved}`)
    }
  })
  for (const path of pages) {
    await check(`${user.username}: ${path || 'the beginning'}`, async () => {
      await tab.go(path)
      assert.notEqual(await tab.text('h1'), '', 'it has a heading')
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
}

const { plain, linked: other, history } = example
const collections = Object.keys(setup.ids)
const PAGES = {
  viewer: ['', `data/${plain.collection}`, `data/${other.collection}/${setup.ids[other.collection]}`, 'account'],
  editor: ['', ...collections.map((one) => `data/${one}`), ...collections.map((one) => `data/${one}/new`),
    `data/${history.collection}/${setup.ids[history.collection]}/history`, 'declarations', 'explorer', 'explorer/listOwnApiKeys',
    'account', 'system/health', 'nothing/here', `data/${plain.collection}?filter=${plain.label}==nobody`],
  admin: ['', 'manage/users', 'manage/invites', 'manage/service-accounts', 'manage/personal-api-keys', 'manage/settings', 'audit'],
  superadmin: ['', 'manage/tenants', 'manage/users', 'audit', 'system/migrations', 'manage/settings', `data/${other.collection}`]
}

/** The parts, by name: each for all of the four whom it concerns. */
const parts = {
  login: () => firstPage(setup),
  keyboard: () => keyboard(setup),
  async pages() {
    for (const user of everybody) {
      const one = await of(user)
      await everyPage(one, PAGES[Object.keys(users).find((kind) => users[kind] === user)])
      await check(`${user.username}: nothing was refused by the policy of content`, () => one.tab.close())
    }
  },
  async data() {
    for (const user of everybody) {
      const one = await of(user)
      if (example.writers.has(user)) for (const flow of [forms, hasty, leaving, linked, oneOf, members]) await flow(one)
      for (const flow of [tables, files]) await flow(one)
      if (example.writers.has(user)) await deleting(one)
      if (user === users.editor) await builder(one)
      await allowed.offered(one)
      await check(`${user.username}: no failure of a script, no violation`, () => one.tab.close())
    }
  },
  async past() {
    await past(setup)
    for (const user of [users.editor, users.admin]) await restoring({ ...setup, user })
    await notRestoring(setup)
  },
  async explorer() {
    for (const user of everybody) {
      const one = await of(user)
      await explorer(one)
      await check(`${user.username}: the explorer fails nowhere`, () => one.tab.close())
    }
  },
  async script() {
    const admin = await of(users.admin)
    await hostile.stored({ ...setup, admin })
    await check('script fails nowhere', () => admin.tab.close())
    await hostile.described(setup)
  },
  async allowed() {
    await allowed.learnt(setup)
    await allowed.described(setup)
  },
  async account() {
    for (const user of [users.editor, users.admin, users.viewer]) await account(await of(user))
  },
  async administration() {
    await administration(setup)
    await superadmin(setup)
  },
  sessions: () => sessions(setup)
}

const wanted = process.env.CONSOLE_PARTS?.split(' ') ?? Object.keys(parts)
for (const part of wanted) await check(`${name}, ${part}: it comes to its end`, parts[part])
await browser.close()
console.log(JSON.stringify({ done: true }))
