// The records of administration: one table for all kinds, and what each kind
// has and can be done to it, as data.

import { at, get, post, request } from './api.js'
import { h } from './element.js'
import { form } from './form.js'
import { deref, has, kindOf, schemaOf } from './model.js'
import { go } from './route.js'
import { anywhere, count, words } from './text.js'
import { action, button, confirm, dialog, empty, head, notify, secret, value } from './ui.js'

const SIZE = 25

/** What is made and shown this once, by the member of the answer. */
const SECRETS = { temporaryPassword: 'Temporary password', key: 'Key', token: 'Token', clientSecret: 'Client secret' }

const line = (schema) => schema.type && [schema.type].flat().includes('string') && !schema.enum && !schema.format && !schema.maxLength ? { ...schema, format: 'line' } : schema

/** Fields of a form from a schema of the description. */
function fieldsOf(name, { without = [], hints = {} } = {}) {
  const schema = schemaOf(name) ?? { properties: {} }
  return Object.entries(schema.properties).filter(([field]) => !without.includes(field)).map(([field, given]) =>
    ({ name: field, title: words(field), schema: line(deref(given)), required: (schema.required ?? []).includes(field), hint: hints[field] }))
}

const ROLES = { roles: 'Names of roles, one on each line.', securityAttributes: 'As JSON: what policies ask for.', profile: 'As JSON: what you like.', temporaryPassword: 'Nothing: one is made, and shown once.' }

async function tellSecrets(made, text) {
  const found = Object.entries(SECRETS).filter(([name]) => made?.[name]).map(([name, title]) => [title, made[name]])
  if (made?.admin) found.push(...Object.entries(SECRETS).filter(([name]) => made.admin[name]).map(([name, title]) => [`${title} of ${made.admin.username}`, made.admin[name]]))
  if (made?.clientId && found.length > 0) found.unshift(['Client id', made.clientId])
  if (found.length > 0) await secret('Shown this once', text ?? 'Keep it now: nobody can show it again.', Object.fromEntries(found))
}

/** A dialog with a form; "save" does the work, after which the page is drawn anew. */
const ask = (title, fields, values, submit, save, again) => dialog(title, (close) => form({
  fields, values, submit, cancel: () => close(),
  save: async (said) => {
    const made = await save(said)
    close()
    await again()
    await tellSecrets(made)
  }
}).node)

const sure = (text, title, why, work) => ({ text, danger: true, run: async (one, base, again) => {
  if (!await confirm(title(one), why, text)) return
  const made = await work(one, base)
  notify('Done.')
  await again()
  await tellSecrets(made)
} })

const USERS = {
  title: 'Users', record: 'User', search: 'username', base: (tenant) => at`/manage/tenants/${tenant}/users`, path: '/manage/tenants/{id}/users',
  columns: ['username', 'email', 'status', 'roles', 'isTenantAdmin', 'lastLoginAt'],
  create: { title: 'New user', schema: 'UserCreation', empty: 'There are no users yet. Make one, or send an invite.' },
  actions: [
    { text: 'Edit', run: (one, base, again) => ask(`User ${one.username}`, fieldsOf('UserUpdate', { without: ['temporaryPassword'], hints: ROLES }), one, 'Save',
      (said) => Object.keys(said).length > 0 && request('PATCH', base + at`/${one.id}`, { body: said }), again) },
    { text: 'Roles', needs: '/manage/tenants/{id}/users/{uid}/roles', run: (one, base, again) => ask(`Roles of ${one.username}`, fieldsOf('RoleAssignment', { hints: ROLES }), one, 'Save',
      (said) => request('PUT', base + at`/${one.id}/roles`, { body: { roles: said.roles ?? (said.roles === null ? [] : one.roles) } }), again) },
    { text: 'New temporary password', run: (one, base, again) => ask(`Temporary password of ${one.username}`,
      [{ name: 'temporaryPassword', title: 'Temporary password', schema: schemaOf('UserUpdate').properties.temporaryPassword, required: true, hint: 'To be changed at the next login. All sessions of the user end.' }],
      {}, 'Set it', (said) => request('PATCH', base + at`/${one.id}`, { body: said }), again) },
    { text: 'Make administrator', when: (one, me) => me.isSuperAdmin && !one.isTenantAdmin, run: async (one, base, again) => { await post(base.replace(/users$/, '') + at`tenant-admins/${one.id}`); await again() } },
    { text: 'No administrator any more', when: (one, me) => me.isSuperAdmin && one.isTenantAdmin, run: async (one, base, again) => { await request('DELETE', base.replace(/users$/, '') + at`tenant-admins/${one.id}`); await again() } },
    { text: 'Disable', when: (one) => one.status === 'ACTIVE', ...sure('Disable', (one) => `Disable ${one.username}?`, 'Sessions and keys of the user are refused from the next request on.', (one, base) => request('PATCH', base + at`/${one.id}`, { body: { status: 'DISABLED' } })) },
    { text: 'Enable', when: (one) => one.status === 'DISABLED', run: async (one, base, again) => { await request('PATCH', base + at`/${one.id}`, { body: { status: 'ACTIVE' } }); await again() } },
    { ...sure('Delete', (one) => `Delete ${one.username}?`, 'The account, its sessions and keys are gone at once. This cannot be undone.', (one, base) => request('DELETE', base + at`/${one.id}`)) }
  ]
}

const KINDS = {
  tenants: {
    title: 'Tenants', record: 'Tenant', search: 'name', base: () => '/manage/tenants', path: '/manage/tenants', alone: true,
    columns: ['name', 'slug', 'status', 'createdAt'],
    create: { title: 'New tenant', schema: 'TenantCreation', empty: 'There are no tenants yet. Each has users and data of its own.' },
    actions: [
      { text: 'Edit', run: (one, base, again) => ask(`Tenant ${one.name}`, fieldsOf('TenantUpdate', { hints: { attributes: 'As JSON: what policies ask for.' } }), one, 'Save', (said) => Object.keys(said).length > 0 && request('PATCH', base + at`/${one.id}`, { body: said }), again) },
      { ...sure('Delete', (one) => `Delete the tenant ${one.name}?`, 'Its users cannot log in from now on, and all its data is removed. This cannot be undone.', (one, base) => request('DELETE', base + at`/${one.id}`)) }
    ]
  },
  users: USERS,
  invites: {
    title: 'Invites', record: 'Invite', search: 'username', base: (tenant) => at`/manage/tenants/${tenant}/invites`, path: '/manage/tenants/{id}/invites',
    columns: ['username', 'email', 'status', 'roles', 'expiresAt'],
    create: { title: 'New invite', schema: 'InviteCreation', empty: 'There are no invites yet. An invite lets somebody make an account, and choose its password.' },
    actions: [{ ...sure('Delete', (one) => `Take the invite of ${one.username} back?`, 'It cannot be accepted any more.', (one, base) => request('DELETE', base + at`/${one.id}`)), when: (one) => one.status !== 'ACCEPTED' }]
  },
  'service-accounts': {
    title: 'Service accounts', record: 'ServiceAccount', search: 'name', base: (tenant) => at`/manage/tenants/${tenant}/service-accounts`, path: '/manage/tenants/{id}/service-accounts',
    columns: ['name', 'clientId', 'status', 'roles', 'lastUsedAt'],
    create: { title: 'New service account', schema: 'ServiceAccountCreation', empty: 'There are no service accounts yet. A program that acts for nobody gets one.' },
    actions: [
      { ...sure('New secret', (one) => `Make a new secret for ${one.name}?`, 'The old one, and tokens that were got by it, are refused from then on.', (one, base) => post(base + at`/${one.id}/rotate-secret`)), when: (one) => one.status === 'ACTIVE' },
      { ...sure('Disable', (one) => `Disable ${one.name}?`, 'It is refused from the next request on.', (one, base) => post(base + at`/${one.id}/disable`)), when: (one) => one.status === 'ACTIVE' }
    ]
  },
  'personal-api-keys': {
    title: 'Personal keys', record: 'TenantApiKey', search: 'name', base: (tenant) => at`/manage/tenants/${tenant}/personal-api-keys`, path: '/manage/tenants/{id}/personal-api-keys',
    columns: ['name', 'ownerUsername', 'status', 'domainRoles', 'expiresAt', 'lastUsedAt'],
    create: { empty: 'Nobody in this tenant has a personal key.' },
    actions: [{ ...sure('Revoke', (one) => `Revoke the key ${one.name} of ${one.ownerUsername}?`, 'It is refused from the next request on, for good.', (one, base) => post(base + at`/${one.id}/revoke`)), when: (one) => one.status === 'ACTIVE' }]
  }
}

function cell(kind, one, name) {
  const schema = deref(schemaOf(kind.record)?.properties[name] ?? {})
  const shown = kindOf(schema)
  return shown === 'enum' ? h('span', { class: `chip ${one[name]}` }, one[name]) : value(one[name], shown, { short: true })
}

function rowMenu(kind, one, base, me, again) {
  const fit = kind.actions.filter(({ when, needs }) => (when?.(one, me) ?? true) && (!needs || has(needs, 'put')))
  const name = one[kind.columns[0]]
  if (fit.length === 0) return null
  return button('Actions', () => dialog(name, (close) => [
    fit.map(({ text, danger, run }) => action(text, () => { close(); return run(one, base, again) }, { class: danger ? 'danger' : undefined })),
    h('div', { class: 'row end' }, button('Close', () => close()))
  ]), { class: 'small', 'aria-label': `Actions on ${name}` })
}

export async function show({ parts: [, name], query, signal, state, tenant, redraw }) {
  if (name === 'settings') return import('./settings.js').then((module) => module.show({ state, tenant, signal }))
  const kind = KINDS[name]
  if (!kind || !has(kind.path)) return empty('There is no such page.')
  if (!tenant && !kind.alone) return [head(kind.title), empty('Choose the tenant that you want to work in, at the top of the page.')]
  const base = kind.base(tenant)
  const move = (change) => go(['manage', name], { ...query, ...change })
  const again = async () => { if (kind.alone) await redraw(); go(['manage', name], query) }
  const filter = query.find ? `${kind.search}=ilike=${anywhere(query.find)}` : undefined
  const { data, meta } = await get(base, { filter, sort: query.sort ?? kind.columns[0], 'page[size]': SIZE, 'page[number]': query.page }, { signal })
  const create = kind.create.schema && has(kind.path, 'post') && button(kind.create.title, () =>
    ask(kind.create.title, fieldsOf(kind.create.schema, { without: ['admin'], hints: ROLES }).concat(kind.alone ? adminFields() : []), {}, 'Create',
      (said) => post(base, kind.alone ? withAdmin(said) : said), again), { class: 'primary' })
  const find = h('form', { class: 'row', role: 'search', onsubmit: (event) => { event.preventDefault(); move({ find: box.value, page: undefined }) } })
  const box = h('input', { type: 'search', value: query.find ?? '', 'aria-label': `Find by ${words(kind.search).toLowerCase()}`, placeholder: `Find by ${words(kind.search).toLowerCase()}` })
  find.append(box, h('button', { type: 'submit' }, 'Find'))
  const page = meta.pagination
  return [
    head(kind.title, { over: 'Administration', tools: create }),
    find,
    data.length === 0 ? empty(query.find ? 'Nothing is called so.' : kind.create.empty)
      : h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': kind.title }, h('table', null,
        h('thead', null, h('tr', null, kind.columns.map((column) => h('th', { scope: 'col' }, words(column))), h('th', { scope: 'col' }, h('span', { class: 'sr' }, 'Actions')))),
        h('tbody', null, data.map((one) => h('tr', null, kind.columns.map((column, i) => h(i === 0 ? 'th' : 'td', i === 0 ? { scope: 'row' } : null, cell(kind, one, column))),
          h('td', { class: 'right' }, rowMenu(kind, one, base, state.me, again))))))),
    h('nav', { class: 'row pages', 'aria-label': 'Pages' }, h('span', { class: 'muted grow' }, count(page.totalRecords, 'row')),
      button('‹', () => move({ page: page.number - 1 }), { disabled: page.number <= 1, 'aria-label': 'Page before' }),
      h('span', null, `${page.number} of ${Math.max(1, page.totalPages)}`),
      button('›', () => move({ page: page.number + 1 }), { disabled: page.number >= page.totalPages, 'aria-label': 'Next page' }))
  ]
}

/** A tenant may be made together with its first administrator. */
const adminFields = () => fieldsOf('TenantAdminCreation').map((field) =>
  ({ ...field, name: `admin.${field.name}`, title: `Administrator: ${field.title.toLowerCase()}`, required: false }))

function withAdmin(said) {
  const body = {}
  for (const [name, given] of Object.entries(said)) {
    if (name.startsWith('admin.')) (body.admin ??= {})[name.slice(6)] = given
    else body[name] = given
  }
  return body
}
