// "Why not?": a request as another user, which is undone, and the reason of
// its status.

import { at, get, post } from './api.js'
import { h, put } from './element.js'
import { form } from './form.js'
import { pretty } from './text.js'
import { head, noTenant } from './ui.js'

const LINE = { type: 'string', format: 'line' }
const METHODS = ['GET', 'POST', 'PATCH', 'DELETE']

const userField = (users) => ({
  name: 'userId',
  title: 'As',
  required: true,
  hint: '',
  input: (props) => {
    const node = h('select', props, users.map(({ id, username }) => h('option', { value: id }, username)))
    return { node, isChanged: () => true, get: () => node.value }
  }
})

export async function show({ tenant, signal }) {
  if (!tenant) return [head('Why not?'), noTenant()]
  const query = { sort: 'username', 'page[size]': 100 }
  const { data } = await get(at`/manage/tenants/${tenant}/users`, query, { signal })
  const place = h('div', { role: 'status' })
  const made = form({
    fields: [
      userField(data),
      { name: 'method', title: 'Method', required: true, schema: { enum: METHODS }, hint: '' },
      { name: 'target', title: 'Target', required: true, schema: LINE, hint: 'As /api/v1/…' },
      { name: 'body', title: 'Body', schema: { type: 'object' } }
    ],
    values: { method: 'GET', target: '/api/v1/' },
    submit: 'Why?',
    all: true,
    save: async (said) => put(place, h('pre', { tabindex: 0 }, pretty(await post('/manage/explain', said))))
  })
  const under = 'What a request of a user is answered, and for which reason. Nothing of it is done.'
  return [head('Why not?', { over: 'Administration', under }), h('section', { class: 'panel' }, made.node), place]
}
