// The kinds of records of administration, as data: what each has, and what can
// be done to one.
//
// An action has a text, and "run", which gets the record, the address of its
// list, and the page: { me, hints, again, work }.  Where "when" or "needs"
// says no, it is not there.

import { at, get, post, request } from './api.js'
import { h } from './element.js'
import { form } from './form.js'
import { bodyOf, deref } from './model.js'
import { words } from './text.js'
import { action, button, confirm, dialog, notify, plainTable, secret, value } from './ui.js'

/** What is made and shown this once, by the member of the answer. */
const SECRETS = {
  temporaryPassword: 'Temporary password', key: 'Key', token: 'Token', clientSecret: 'Client secret', secret: 'Secret'
}

const HINTS = {
  id: 'Nothing: one is made. Else the id that the tenant has elsewhere.',
  roles: 'Names of roles, one on each line.',
  securityAttributes: 'As JSON: what policies ask for.',
  attributes: 'As JSON: what policies ask for.',
  profile: 'As JSON: what you like.',
  temporaryPassword: 'Nothing: one is made, and shown once.'
}

/** A text without a known length is one line here. */
function line(schema) {
  const isText = [schema.type].flat().includes('string') && !schema.enum && !schema.format && !schema.maxLength
  return isText ? { ...schema, format: 'line' } : schema
}

/** Fields of a form from a schema. */
export function fieldsOf({ properties = {}, required = [] }, { without = [], hints = {} } = {}) {
  return Object.entries(properties).filter(([field]) => !without.includes(field)).map(([field, given]) => ({
    name: field, title: words(field), schema: line(deref(given)), required: required.includes(field),
    hint: hints[field] ?? HINTS[field]
  }))
}

const secretsOf = (made, suffix = '') => Object.entries(SECRETS).filter(([name]) => made?.[name])
  .map(([name, title]) => [title + suffix, made[name]])

async function tellSecrets(made) {
  const found = [...secretsOf(made), ...secretsOf(made?.admin, ` of ${made?.admin?.username}`)]
  if (found.length === 0) return
  if (made.clientId) found.unshift(['Client id', made.clientId])
  await secret('Shown this once', 'Keep it now: nobody can show it again.', Object.fromEntries(found))
}

/** A dialog with a form; "save" does the work, after which the page is drawn anew. */
export const ask = (title, fields, values, submit, save, again) => dialog(title, (close) => form({
  fields, values, submit, cancel: () => close(),
  save: async (said) => {
    const made = await save(said)
    close()
    await again()
    await tellSecrets(made)
  }
}).node)

/** An action that is asked about first. */
const sure = (text, title, why, work) => ({
  text,
  danger: true,
  run: async (one, base, { again }) => {
    if (!await confirm(title(one), why, text)) return
    const made = await work(one, base)
    notify('Done.')
    await again()
    await tellSecrets(made)
  }
})

/** One that needs no question. */
const plain = (text, work) => ({
  text,
  run: async (one, base, { again }) => {
    await work(one, base)
    notify('Done.')
    await again()
  }
})

const patch = (one, base, body) => request('PATCH', base + at`/${one.id}`, { body })
const remove = (one, base) => request('DELETE', base + at`/${one.id}`)
const isActive = ({ status }) => status === 'ACTIVE'

/** A form of what can be changed, by the schema of a path's PATCH; nothing changed is nothing sent. */
const edit = (title, path, without) => ({
  text: 'Edit',
  needs: [path, 'patch'],
  run: (one, base, { hints, again }) => ask(title(one),
    fieldsOf(bodyOf(path, 'patch'), { without, hints }), one, 'Save',
    (said) => Object.keys(said).length > 0 && patch(one, base, said), again)
})

/** The address of a user's authority, from that of users. */
const adminOf = (one, base) => base.replace(/users$/, '') + at`tenant-admins/${one.id}`

const USER = '/manage/tenants/{id}/users/{uid}'
const ROLES = `${USER}/roles`
const AT_NEXT_LOGIN = 'To be changed at the next login. All sessions of the user end.'

const userActions = [
  edit(({ username }) => `User ${username}`, USER, ['temporaryPassword']),
  {
    text: 'Roles',
    needs: [ROLES, 'put'],
    run: (one, base, { hints, again }) => ask(`Roles of ${one.username}`,
      fieldsOf(bodyOf(ROLES, 'put'), { hints }), one, 'Save',
      ({ roles = one.roles }) => request('PUT', base + at`/${one.id}/roles`, { body: { roles: roles ?? [] } }), again)
  },
  {
    text: 'New temporary password',
    run: (one, base, { again }) => ask(`Temporary password of ${one.username}`,
      fieldsOf(bodyOf(USER, 'patch'), { hints: { temporaryPassword: AT_NEXT_LOGIN } })
        .filter(({ name }) => name === 'temporaryPassword').map((field) => ({ ...field, required: true })),
      {}, 'Set it', (said) => patch(one, base, said), again)
  },
  {
    ...plain('Make administrator', (one, base) => post(adminOf(one, base))),
    when: (one, me) => me.isSuperAdmin && !one.isTenantAdmin
  },
  {
    ...plain('No administrator any more', (one, base) => request('DELETE', adminOf(one, base))),
    when: (one, me) => me.isSuperAdmin && one.isTenantAdmin
  },
  {
    ...sure('Disable', (one) => `Disable ${one.username}?`,
      'Sessions and keys of the user are refused from the next request on.',
      (one, base) => patch(one, base, { status: 'DISABLED' })),
    when: isActive
  },
  {
    ...plain('Enable', (one, base) => patch(one, base, { status: 'ACTIVE' })),
    when: ({ status }) => status === 'DISABLED'
  },
  sure('Delete', (one) => `Delete ${one.username}?`,
    'The account, its sessions and keys are gone at once. This cannot be undone.', remove)
]

const tenantActions = [
  {
    text: 'Work in this tenant',
    when: isActive,
    run: (one, base, { work }) => work(one.id).then(() => notify(`You work in ${one.name} now.`))
  },
  edit(({ name }) => `Tenant ${name}`, '/manage/tenants/{id}'),
  {
    ...sure('Delete', (one) => `Delete the tenant ${one.name}?`,
      'Its users cannot log in from now on, and all its data is removed. This cannot be undone.', remove),
    needs: ['/manage/tenants/{id}', 'delete']
  }
]

const inviteActions = [{
  ...sure('Delete', (one) => `Take the invite of ${one.username} back?`, 'It cannot be accepted any more.', remove),
  when: ({ status }) => status !== 'ACCEPTED'
}]

const accountActions = [
  {
    ...sure('New secret', (one) => `Make a new secret for ${one.name}?`,
      'The old one, and tokens that were got by it, are refused from then on.',
      (one, base) => post(base + at`/${one.id}/rotate-secret`)),
    when: isActive
  },
  {
    ...sure('Disable', (one) => `Disable ${one.name}?`, 'It is refused from the next request on.',
      (one, base) => post(base + at`/${one.id}/disable`)),
    when: isActive
  }
]

const HOOK = '/manage/tenants/{id}/webhooks/{webhookId}'

/** What was sent, and what is sent again by hand. */
const deliveries = {
  text: 'Deliveries',
  needs: [`${HOOK}/deliveries`, 'get'],
  run: async (one, base) => {
    const path = base + at`/${one.id}/deliveries`
    const { data } = await get(path, { 'page[size]': 50 })
    const names = Object.keys(data[0] ?? {}).filter((name) => name !== 'id').slice(0, 6)
    const retry = (of) => action('Send again', async () => {
      await post(path + at`/${of.id}/retry`)
      notify('It is sent again.')
    }, { class: 'small' })
    const row = (of) => h('tr', null,
      names.map((name) => h('td', null, value(of[name], kindBy(name, of), { short: true }))),
      h('td', { class: 'right' }, of.status === 'FAILED' && retry(of)))
    return dialog(`Deliveries to ${one.url}`, (close) => [
      data.length === 0 ? h('p', null, 'Nothing has been sent yet.')
        : plainTable('Deliveries', names.map(words), data.map(row), { actions: true }),
      h('div', { class: 'row end' }, button('Close', () => close()))
    ], { wide: true })
  }
}

const kindBy = (name, of) => /At$/.test(name) && of[name] ? 'date-time' : undefined

const hookActions = [
  edit(({ url }) => `Webhook ${url}`, HOOK),
  deliveries,
  sure('New secret', (one) => `Make a new secret for ${one.url}?`, 'Who checks the signature has to have it.',
    (one, base) => post(base + at`/${one.id}/rotate-secret`)),
  sure('Delete', (one) => `Delete the webhook to ${one.url}?`, 'Nothing more is sent there.', remove)
]

const keyActions = [{
  ...sure('Revoke', (one) => `Revoke the key ${one.name} of ${one.ownerUsername}?`,
    'It is refused from the next request on, for good.', (one, base) => post(base + at`/${one.id}/revoke`)),
  when: isActive
}]

/** Those of a tenant, at an address of their own below it. */
const ofTenant = (name, more) =>
  ({ base: (tenant) => at`/manage/tenants/${tenant}/${name}`, path: `/manage/tenants/{id}/${name}`, ...more })

export const KINDS = {
  tenants: {
    title: 'Tenants', record: 'Tenant', search: 'name', base: () => '/manage/tenants', path: '/manage/tenants',
    alone: true,
    columns: { name: 'Name', slug: 'Slug', status: 'Status', createdAt: 'Since' },
    create: { title: 'New tenant', without: ['admin'], admin: 'TenantAdminCreation' },
    empty: 'There are no tenants yet. Each has users and data of its own.',
    actions: tenantActions
  },
  users: ofTenant('users', {
    title: 'Users', record: 'User', search: 'username',
    columns: {
      username: 'Username', email: 'E-mail', status: 'Status', roles: 'Roles', isTenantAdmin: 'Admin',
      lastLoginAt: 'Last login'
    },
    create: { title: 'New user' },
    empty: 'There are no users yet. Make one, or send an invite.',
    actions: userActions
  }),
  invites: ofTenant('invites', {
    title: 'Invites', record: 'Invite', search: 'username',
    columns: { username: 'Username', email: 'E-mail', status: 'Status', roles: 'Roles', expiresAt: 'Until' },
    create: { title: 'New invite' },
    empty: 'There are no invites yet. An invite lets somebody make an account, and choose its password.',
    actions: inviteActions
  }),
  'service-accounts': ofTenant('service-accounts', {
    title: 'Service accounts', record: 'ServiceAccount', search: 'name',
    columns: { name: 'Name', clientId: 'Client id', status: 'Status', roles: 'Roles', lastUsedAt: 'Last used' },
    create: { title: 'New service account' },
    empty: 'There are no service accounts yet. A program that acts for nobody gets one.',
    actions: accountActions
  }),
  webhooks: ofTenant('webhooks', {
    title: 'Webhooks', search: 'url',
    columns: { url: 'Address', types: 'Types', actions: 'Actions', roles: 'Roles' },
    kinds: { types: 'list', actions: 'list', roles: 'list' },
    create: { title: 'New webhook' },
    empty: 'There are no webhooks yet. A webhook tells another program what has changed.',
    actions: hookActions
  }),
  'personal-api-keys': ofTenant('personal-api-keys', {
    title: 'Personal keys', record: 'TenantApiKey', search: 'name',
    columns: {
      name: 'Name', ownerUsername: 'Owner', status: 'Status', domainRoles: 'Roles', expiresAt: 'Until',
      lastUsedAt: 'Last used'
    },
    empty: 'Nobody in this tenant has a personal key. Users make theirs in "Own account".',
    actions: keyActions
  })
}
