// What is one's own: who one is, the password, the profile, keys, sessions.

import { at, changePassword, get, post, request } from './api.js'
import { h, put } from './element.js'
import { form } from './form.js'
import { check, passwordFields } from './login.js'
import { has, schemaOf } from './model.js'
import { Exact } from './text.js'
import { action, button, confirm, dialog, empty, facts, failure, head, notify, secret, value } from './ui.js'

const section = (title, ...children) => h('section', { class: 'panel stack', 'aria-label': title }, h('h2', null, title), children)

/** A part that is read for itself, so that one that fails leaves the others. */
async function part(title, read) {
  const place = h('div', { class: 'stack' })
  const fill = async () => {
    try {
      put(place, await read(fill))
    } catch (error) {
      if (error.name !== 'AbortError') put(place, failure(error))
    }
  }
  await fill()
  return section(title, place)
}

function who(me) {
  return section('Who you are', facts([
    ['Username', me.username], ['E-mail', value(me.email)], ['Roles', me.roles.length > 0 ? value(me.roles, 'list') : value(null)],
    ['Authority', me.isSuperAdmin ? 'SuperAdmin' : me.isTenantAdmin ? 'TenantAdmin' : 'none'],
    ['Id', value(me.userId, 'uuid')],
    ...Object.entries(me.securityAttributes).map(([name, of]) => [`Attribute ${name}`, typeof of === 'object' && !(of instanceof Exact) ? JSON.stringify(of) : String(of), 'security attribute'])
  ]))
}

function password() {
  const place = h('div')
  const made = () => form({
    fields: passwordFields(),
    submit: 'Change the password',
    save: async (said) => {
      check(said)
      await changePassword(said.currentPassword ?? '', said.newPassword ?? '')
      notify('The password is changed; your other sessions have ended.')
      put(place, made().node)
    }
  })
  return section('Password', put(place, made().node))
}

function profile(me, state) {
  const place = h('div')
  const made = () => form({
    fields: [{ name: 'profile', title: 'Profile', schema: { type: 'object' }, hint: 'As JSON. What is there already stays unless it is named; null takes it away.' }],
    values: { profile: me.profile },
    save: async (said) => {
      state.me = await request('PATCH', '/auth/me', { body: { profile: said.profile ?? {} } }).then(({ json }) => json)
      Object.assign(me, state.me)
      notify('Profile saved.')
      put(place, made().node)
    }
  })
  return section('Profile', put(place, made().node))
}

async function keys(me, fill) {
  const { data } = await get('/auth/me/api-keys', { sort: '-createdAt', 'page[size]': 100 })
  const row = (key) => h('tr', null, h('th', { scope: 'row' }, key.name), h('td', null, h('span', { class: `chip ${key.status}` }, key.status)),
    h('td', null, value(key.domainRoles, 'list')), h('td', null, value(key.expiresAt, 'date-time')), h('td', null, value(key.lastUsedAt, 'date-time')),
    h('td', { class: 'right' }, key.status === 'ACTIVE' && action('Disable', async () => {
      if (!await confirm(`Disable the key ${key.name}?`, 'Programs that use it are refused from the next request on.', 'Disable')) return
      await post(at`/auth/me/api-keys/${key.id}/disable`)
      await fill()
    }, { class: 'small', 'aria-label': `Disable ${key.name}` })))
  return [
    h('p', { class: 'muted' }, 'A key lets a program act for you, with roles and attributes that you choose of yours.'),
    data.length === 0 ? h('p', null, 'You have no keys yet.')
      : h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Your keys' }, h('table', null,
        h('thead', null, h('tr', null, ['Name', 'Status', 'Roles', 'Until', 'Last used'].map((name) => h('th', { scope: 'col' }, name)),
          h('th', { scope: 'col' }, h('span', { class: 'sr' }, 'Actions')))),
        h('tbody', null, data.map(row)))),
    h('div', { class: 'row' }, button('New key', () => newKey(me, fill)))
  ]
}

function newKey(me, fill) {
  const schema = schemaOf('ApiKeyCreation')?.properties ?? {}
  return dialog('New personal key', (close) => form({
    fields: [
      { name: 'name', title: 'Name', schema: { type: 'string', format: 'line' }, required: true, hint: 'What it is for.' },
      { name: 'domainRoles', title: 'Roles', schema: schema.domainRoles ?? { type: 'array', items: { type: 'string' } }, hint: 'One on each line, of yours.' },
      { name: 'securityAttributes', title: 'Security attributes', schema: { type: ['object', 'null'] }, hint: 'As JSON, of yours.' },
      { name: 'expiresAt', title: 'Until', schema: { type: ['string', 'null'], format: 'date-time' }, hint: 'In your local time. Nothing: it does not end by itself, where that is allowed.' }
    ],
    values: { domainRoles: me.roles, securityAttributes: me.securityAttributes },
    submit: 'Create',
    all: true,
    cancel: () => close(),
    save: async (said) => {
      const made = await post('/auth/me/api-keys', said)
      close()
      fill()
      await secret('Your new key', 'It is shown this once. Programs send it as X-API-Key.', { [made.name]: made.key })
    }
  }).node)
}

export async function show({ state }) {
  const { me } = state
  if (me.accountKind !== 'USER') return [head('Own account'), empty('This is the account of a program.')]
  return [
    head('Own account'),
    who(me),
    has('/auth/me/api-keys') && await part('Personal keys', (fill) => keys(me, fill)),
    has('/auth/change-password', 'post') && password(),
    has('/auth/me', 'patch') && profile(me, state)
  ]
}
