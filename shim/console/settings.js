// What holds for personal keys: in all tenants, and in one.

import { at, get, request } from './api.js'
import { h } from './element.js'
import { form } from './form.js'
import { has } from './model.js'
import { empty, head, notify } from './ui.js'

const GLOBAL = '/manage/settings/personal-api-keys'
const TENANT = '/manage/tenants/{id}/settings/personal-api-keys'
const QUESTIONS = [['enabled', 'Users may have personal keys'], ['allowNonExpiring', 'Keys may be without an end']]

/** A choice; of nothing, what holds then. */
function choice([name, title], now, inherits) {
  const nothing = inherits ? `as in all tenants (now ${now.effective[name] ? 'yes' : 'no'})` : undefined
  return { name, title, schema: { type: ['boolean', 'null'], nothing }, hint: '' }
}

async function part(title, path, { inherits, signal }) {
  const now = await get(path, {}, { signal })
  const made = form({
    fields: QUESTIONS.map((question) => choice(question, now, inherits)),
    values: now,
    all: true,
    save: async (said) => {
      await request('PUT', path, { body: said })
      notify('Saved.')
    }
  })
  return h('section', { class: 'panel stack', 'aria-label': title },
    h('h2', null, title), h('div', { class: 'narrow' }, made.node))
}

export async function show({ state, tenant, signal }) {
  const path = tenant && at`/manage/tenants/${tenant}/settings/personal-api-keys`
  return [
    head('Settings', { over: 'Administration' }),
    state.me.isSuperAdmin && has(GLOBAL) && await part('Personal keys, in all tenants', GLOBAL, { signal }),
    tenant ? has(TENANT) && await part('Personal keys, in this tenant', path, { inherits: true, signal })
      : empty('Choose a tenant at the top of the page to see what holds there.')
  ]
}
