// kitsu at work on examples/tracker: rows that know who and when, come back,
// and remember.
//
// Prints one JSON line for each check, as run.mjs.  ENTITYAPI_URL is the
// address of the API's version, ENTITYAPI_TOKEN an access token of a Manager.

import assert from 'node:assert/strict'
import Kitsu from 'kitsu'

async function check(name, action) {
  try {
    await action()
    console.log(JSON.stringify({ name, ok: true }))
  } catch (error) {
    const detail = error.errors ?? error.response?.data ?? error.stack
    console.log(JSON.stringify({ name, ok: false, detail }))
  }
}

const api = new Kitsu({
  baseURL: process.env.ENTITYAPI_URL,
  camelCaseTypes: false,
  resourceCase: 'none',
  headers: { Authorization: `Bearer ${process.env.ENTITYAPI_TOKEN}` }
})
let me, project, task, before

await check('kitsu: users', async () => {
  const { data } = await api.get('users', { params: { filter: 'username==harbour-mia' } })
  me = data[0]
  assert.equal(me.displayName, 'Mia Okafor')
  await assert.rejects(api.patch('user', { id: me.id, displayName: 'x' }), ({ errors }) => errors[0].status === '405')
})
await check('kitsu: what the caller brings', async () => {
  project = (await api.post('project', { key: 'KITSU', name: 'By a client' })).data
  task = (await api.post('task', { title: 'first', project: { data: { id: project.id, type: 'projects' } } })).data
  assert.equal(task.assignee.data.id, me.id)
  assert.equal(task.department, 'engineering')
  assert.equal(task.createdAt, task.updatedAt)
  await assert.rejects(api.post('task', { title: 'x', createdAt: task.createdAt, project: { data: { id: project.id, type: 'projects' } } }),
    ({ errors }) => errors[0].code === 'READ_ONLY' && errors[0].source.pointer === '/data/attributes/createdAt')
})
await check('kitsu: authors', async () => {
  before = task.updatedAt
  await api.patch('task', { id: task.id, title: 'second', meta: task.meta })
  const { data } = await api.get(`tasks/${task.id}`, { params: { include: 'createdBy,updatedBy', fields: { users: 'username' } } })
  assert.equal(data.createdBy.data.username, 'harbour-mia')
  assert.equal(data.updatedBy.data.username, 'harbour-mia')
  assert.ok(data.updatedAt > before)
  task = data
})
await check('kitsu: delete and restore', async () => {
  await api.delete('project', project.id, { headers: { 'If-Match': '*' } })
  await assert.rejects(api.get(`tasks/${task.id}`), ({ errors }) => errors[0].status === '404')
  const hidden = await api.get('tasks', { params: { show: { deleted: 'only' }, filter: 'title==second' } })
  assert.ok(hidden.data[0].meta.deletedAt)
  // kitsu itself sends a body with each POST, and a restore has none
  await assert.rejects(api.axios.post(`tasks/${task.id}/restore`, undefined, { headers: api.headers }), ({ response }) => response.data.errors[0].code === 'STILL_DELETED')
  const { data } = await api.axios.post(`projects/${project.id}/restore`, undefined, { headers: api.headers })
  assert.equal(data.data.attributes.name, 'By a client')
  assert.equal((await api.get(`tasks/${task.id}`)).data.title, 'second')
})
await check('kitsu: history', async () => {
  const { data } = await api.get(`tasks/${task.id}/history`)
  const titles = data.filter(({ changes }) => changes.title).map(({ action, changes }) => [action, changes.title.to])
  assert.deepEqual(titles.at(-1), ['ENTITY_CREATE', 'first'])
  assert.ok(titles.some(([action, to]) => action === 'ENTITY_UPDATE' && to === 'second'))
  assert.ok(data.some(({ action }) => action === 'ENTITY_RESTORE'))
  const was = await api.get(`tasks/${task.id}`, { params: { asOf: before } })
  assert.equal(was.data.title, 'first')
})
console.log(JSON.stringify({ done: true }))
