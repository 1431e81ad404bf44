// What holds for personal keys: in all tenants, and in one.

import { at, get, request } from './api.js'
import { h } from './element.js'
import { form } from './form.js'
import { has } from './model.js'
import { empty, head, notify } from './ui.js'

const GLOBAL = '/manage/settings/personal-api-keys'
const choice = { type: ['boolean', 'null'] }

async function part(title, path, { inherits, signal }) {
  const now = await get(path, {}, { signal })
  const fields = [
    { name: 'enabled', title: 'Users may have personal keys', schema: choice, hint: inherits ? `Nothing: as in all tenants. Now ${now.effective.enabled ? 'yes' : 'no'}.` : '' },
    { name: 'allowNonExpiring', title: 'Keys may be without an end', schema: choice, hint: inherits ? `Nothing: as in all tenants. Now ${now.effective.allowNonExpiring ? 'yes' : 'no'}.` : '' }
  ]
  const made = form({
    fields,
    values: now,
    all: true,
    save: async (said) => {
      await request('PUT', path, { body: said })
      notify('Saved.')
    }
  })
  return h('section', { class: 'panel stack', 'aria-label': title }, h('h2', null, title), made.node)
}

export async function show({ state, tenant, signal }) {
  return [
    head('Settings', { over: 'Administration' }),
    state.me.isSuperAdmin && has(GLOBAL) && await part('Personal keys, in all tenants', GLOBAL, { signal }),
    tenant ? has('/manage/tenants/{id}/settings/personal-api-keys') &&
      await part('Personal keys, in this tenant', at`/manage/tenants/${tenant}/settings/personal-api-keys`, { inherits: true, signal })
      : empty('Choose a tenant at the top of the page to see what holds there.')
  ]
}
