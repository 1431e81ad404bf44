// What was deleted and comes back, and what was done to a resource.

import assert from 'node:assert/strict'
import { SCRIPT, Tab, api, check, login, skip } from './browser.mjs'

const make = async (token, collection, attributes, relationships) =>
  (await api('POST', `/api/v1/${collection}`, { token, body: { data: { type: collection.toLowerCase(), attributes, relationships } } })).data

/** By who holds "restore". */
export async function restoring({ browser, user, example }) {
  const name = `${user.username}: what was deleted is restored`
  if (!example.restored) return skip(name, 'nothing is deleted softly here')
  const { collection, members } = example.restored
  const token = await login(user)
  const key = `BACK${user.username.slice(0, 4).toUpperCase()}`
  const project = await make(token, collection, { key, name: 'Back again' })
  const task = await make(token, members, { title: SCRIPT }, { project: { data: { type: collection, id: project.id } } })
  const there = async () => (await api('GET', `/api/v1/${members}?filter=id==${task.id}`, { token })).data.length === 1
  const tab = await Tab.as(browser, user)
  const remove = async () => {
    await tab.go(`data/${collection}/${project.id}`, 'Back again')
    await tab.says(SCRIPT, '[aria-label=Tasks] td')
    await tab.click('button', 'Delete')
    await tab.says('It can be restored', 'dialog')
    await tab.page.locator('dialog .danger').click()
    await tab.says('Back again deleted')
  }
  await check(name, async () => {
    await remove()
    assert.equal(await there(), false)
    await tab.click('button', 'Undo')
    await tab.says('Back again', 'h1')
    assert.equal(await there(), true)
  })
  await check(`${user.username}: what was deleted is listed, and restored from there`, async () => {
    await remove()
    await tab.go(`data/${collection}?deleted=only`, 'Projects')
    await tab.says('Back again', 'tr.deleted')
    await tab.audit('what was deleted')
    await tab.page.locator('tr.deleted a').click()
    await tab.says('Deleted', '.banner')
    await tab.click('button', 'Restore')
    await tab.gone('.banner')
    assert.equal(await there(), true)
    await tab.close()
  })
}

/** Who may not restore sees nothing of what was deleted. */
export async function notRestoring({ browser, users, example }) {
  if (!example.restored) return
  await check('who may not restore sees nothing of what was deleted', async () => {
    const other = await Tab.as(browser, users.viewer)
    await other.go(`data/${example.restored.collection}?deleted=with`)
    await other.says('do not let you see what was deleted', '.empty')
    await other.close()
  })
}

/** By who holds "history": as often as is asked for, and by who does not. */
export async function past({ browser, users, example }) {
  const { collection, label, changes: [before, after], more } = example.history
  const [field] = Object.keys(before)
  const token = await login(users.editor)
  const made = await make(token, collection, { [label]: 'early', ...more, ...before })
  const attributes = { [label]: SCRIPT.slice(0, 44), ...after }
  await api('PATCH', `/api/v1/${collection}/${made.id}`, {
    token, body: { data: { type: collection, id: made.id, attributes, ...(made.meta ? { meta: { version: made.meta.version } } : {}) } }
  })
  const tab = await Tab.as(browser, users.editor)
  await check('what was done to a resource is a timeline', async () => {
    await tab.go(`data/${collection}/${made.id}`)
    await tab.click('link', 'History')
    await tab.says('History', 'h1')
    const entries = await tab.texts('.timeline > li')
    assert.equal(entries.length, 2)
    assert.match(entries[0], new RegExp(`Changed by ${users.editor.username}`))
    assert.ok(entries[0].replace(/\s+/g, ' ').includes(`${before[field]} → ${after[field]}`), entries[0])
    assert.match(entries[1], new RegExp(`Created by ${users.editor.username}`))
    const times = await tab.page.$$eval('.timeline time', (nodes) => nodes.map((node) => [node.title, node.innerText]))
    for (const [title, shown] of times) {
      assert.match(title, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*Z \(UTC\)$/)
      assert.notEqual(shown, title, 'local, and in words')
    }
    await tab.audit('the history')
  })
  await check('a resource is shown as it was', async () => {
    const links = await tab.page.$$('.timeline a')
    await links[1].click()
    await tab.says('As it was on', '.banner')
    await tab.says('early', 'dd')
    assert.equal(await tab.page.$('.head .primary'), null, 'and cannot be changed there')
    await tab.page.locator('.banner a').click()
    await tab.says(after[field], 'dd')
    await tab.close()
  })
  await check('who may not read the history is told so', async () => {
    const other = await Tab.as(browser, users.viewer)
    await other.go(`data/${collection}/${made.id}/history`)
    await other.says('Your roles do not let you', '.empty')
    await other.close()
  })
}
