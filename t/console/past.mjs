// What was deleted and comes back, and what was done to a resource: in services
// that have it.

import assert from 'node:assert/strict'
import { SCRIPT, Tab, api, check, login, skip } from './browser.mjs'

const make = async (token, type, attributes, relationships) =>
  (await api('POST', `/api/v1/${type}`, { token, body: { data: { type, attributes, relationships } } })).data

export async function restoring({ browser, users, description }) {
  const name = 'what was deleted is restored'
  if (!description.paths['/api/v1/projects/{id}/restore']) return skip(name, 'the description has no restore of projects')
  const token = await login(users.editor)
  const project = await make(token, 'projects', { key: 'BACK', name: 'Back again' })
  const task = await make(token, 'tasks', { title: SCRIPT }, { project: { data: { type: 'projects', id: project.id } } })
  const there = async () => (await api('GET', '/api/v1/tasks', { token })).data.some(({ id }) => id === task.id)
  const tab = await Tab.as(browser, users.editor)
  const remove = async () => {
    await tab.go(`data/projects/${project.id}`, 'Back again')
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
  await check('what was deleted is listed, and restored from there', async () => {
    await remove()
    await tab.go('data/projects?deleted=only', 'Projects')
    await tab.says('Back again', 'tr.deleted')
    await tab.audit('what was deleted')
    await tab.page.locator('tr.deleted a').click()
    await tab.says('Deleted', '.banner')
    await tab.click('button', 'Restore')
    await tab.gone('.banner')
    assert.equal(await there(), true)
    await tab.close()
  })
  await check('who may not restore sees nothing of what was deleted', async () => {
    const other = await Tab.as(browser, users.viewer)
    await other.go('data/projects?deleted=with')
    await other.says('do not let you see what was deleted', '.empty')
    await other.close()
  })
}

export async function past({ browser, users, description }) {
  const name = 'what was done to a resource is a timeline'
  if (!description.paths['/api/v1/tags/{id}/history']) return skip(name, 'the description has no history of tags')
  const token = await login(users.editor)
  const tag = await make(token, 'tags', { name: 'early', colour: '#000001' })
  try {
    await api('GET', `/api/v1/tags/${tag.id}/history`, { token })
  } catch {
    return skip(name, 'an accountant may not read the history of tags')
  }
  await api('PATCH', `/api/v1/tags/${tag.id}`, { token, body: { data: { type: 'tags', id: tag.id, attributes: { name: SCRIPT.slice(0, 44), colour: '#000002' } } } })
  const tab = await Tab.as(browser, users.editor)
  await check(name, async () => {
    await tab.go(`data/tags/${tag.id}`)
    await tab.click('link', 'History')
    await tab.says('History', 'h1')
    const entries = await tab.texts('.timeline > li')
    assert.equal(entries.length, 2)
    assert.match(entries[0], /Changed by ann/)
    assert.match(entries[0], /#000001.*#000002/)
    assert.match(entries[1], /Created by ann/)
    await tab.audit('the history')
  })
  await check('a resource is shown as it was', async () => {
    const links = await tab.page.$$('.timeline a')
    await links[1].click()
    await tab.says('As it was on', '.banner')
    await tab.says('early', 'dd')
    assert.equal(await tab.page.$('.head .primary'), null, 'and cannot be changed there')
    await tab.page.locator('.banner a').click()
    await tab.says('#000002', 'dd')
    await tab.close()
  })
  await check('who may not read the history is told so', async () => {
    const other = await Tab.as(browser, users.viewer)
    await other.go(`data/tags/${tag.id}/history`)
    await other.says('Your roles do not let you', '.empty')
    await other.close()
  })
}
