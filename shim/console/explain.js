// "Why not?": a request as another user, which is undone, and the reason of
// its status.

import { at, get, post } from './api.js'
import { h, put } from './element.js'
import { form } from './form.js'
import { pretty } from './text.js'
import { empty, head } from './ui.js'

export async function show({ tenant, signal }) {
  if (!tenant) return [head('Why not?'), empty('Choose the tenant that you want to work in, at the top of the page.')]
  const { data } = await get(at`/manage/tenants/${tenant}/users`, { sort: 'username', 'page[size]': 100 }, { signal })
  const place = h('div', { role: 'status' })
  const users = {
    name: 'userId', title: 'As', required: true, hint: '',
    input: (props) => {
      const node = h('select', props, data.map(({ id, username }) => h('option', { value: id }, username)))
      return { node, isChanged: () => true, get: () => node.value }
    }
  }
  const made = form({
    fields: [
      users,
      { name: 'method', title: 'Method', required: true, schema: { enum: ['GET', 'POST', 'PATCH', 'DELETE'] }, hint: '' },
      { name: 'target', title: 'Target', required: true, schema: { type: 'string', format: 'line' }, hint: 'As /api/v1/…' },
      { name: 'body', title: 'Body', schema: { type: 'object' } }
    ],
    values: { method: 'GET', target: '/api/v1/' },
    submit: 'Why?',
    all: true,
    save: async (said) => put(place, h('pre', null, pretty(await post('/manage/explain', said))))
  })
  return [head('Why not?', { over: 'Administration', under: 'What a request of a user is answered, and for which reason. Nothing of it is done.' }),
    h('section', { class: 'panel' }, made.node), place]
}
