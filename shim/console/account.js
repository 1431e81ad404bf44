// What is one's own: who one is, the password, the profile, keys, sessions.

import { at, changePassword, get, post, request } from './api.js'
import { h, put } from './element.js'
import { secondFactor } from './factor.js'
import { form } from './form.js'
import { check, passwordFields } from './login.js'
import { has, schemaOf } from './model.js'
import { Exact } from './text.js'
import {
  action, button, confirm, dialog, empty, facts, failure, head, notify, plainTable, secret, value
} from './ui.js'

const KEYS = '/auth/me/api-keys'
const SESSIONS = '/auth/me/sessions'

const section = (title, ...children) =>
  h('section', { class: 'panel stack', 'aria-label': title }, h('h2', null, title), children)

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

/** A form that is there again, empty, when it has done its work. */
function again(title, make) {
  const place = h('div', { class: 'narrow' })
  const fill = () => put(place, make(fill).node)
  return section(title, fill())
}

const authority = ({ isSuperAdmin, isTenantAdmin }) =>
  isSuperAdmin ? 'SuperAdmin' : isTenantAdmin ? 'TenantAdmin' : 'none'

const textOf = (of) => typeof of === 'object' && !(of instanceof Exact) ? JSON.stringify(of) : String(of)

const who = (me) => section('Who you are', facts([
  ['Username', me.username],
  ['E-mail', value(me.email)],
  ['Roles', me.roles.length > 0 ? value(me.roles, 'list') : value(null)],
  ['Authority', authority(me)],
  ['Id', value(me.userId, 'uuid')],
  ...Object.entries(me.securityAttributes).map(([name, of]) => [`Security attribute: ${name}`, textOf(of)])
]))

const password = () => again('Password', (fill) => form({
  fields: passwordFields(),
  submit: 'Change the password',
  save: async (said) => {
    check(said)
    await changePassword(said.currentPassword ?? '', said.newPassword ?? '')
    notify('The password is changed; your other sessions have ended.')
    fill()
  }
}))

const PROFILE = 'As JSON. What is there already stays unless it is named; null takes it away.'

const profile = (me, state) => again('Profile', (fill) => form({
  fields: [{ name: 'profile', title: 'Profile', schema: { type: 'object' }, hint: PROFILE }],
  values: { profile: me.profile },
  save: async (said) => {
    state.me = (await request('PATCH', '/auth/me', { body: { profile: said.profile ?? {} } })).json
    Object.assign(me, state.me)
    notify('Profile saved.')
    fill()
  }
}))

function keyRow(key, fill) {
  const disable = action('Disable', async () => {
    const warning = 'Programs that use it are refused from the next request on.'
    if (!await confirm(`Disable the key ${key.name}?`, warning, 'Disable')) return
    await post(at`/auth/me/api-keys/${key.id}/disable`)
    await fill()
  }, { class: 'small', 'aria-label': `Disable ${key.name}` })
  return h('tr', null,
    h('th', { scope: 'row' }, key.name),
    h('td', null, h('span', { class: `chip ${key.status}` }, key.status)),
    h('td', null, value(key.domainRoles, 'list')),
    h('td', null, value(key.expiresAt, 'date-time')),
    h('td', null, value(key.lastUsedAt, 'date-time')),
    h('td', { class: 'right' }, key.status === 'ACTIVE' && disable))
}

async function keys(me, fill) {
  const { data } = await get(KEYS, { sort: '-createdAt', 'page[size]': 100 })
  const columns = ['Name', 'Status', 'Roles', 'Until', 'Last used']
  return [
    h('p', { class: 'muted' }, 'A key lets a program act for you, with roles and attributes that you choose of yours.'),
    data.length === 0 ? h('p', null, 'You have no keys yet.')
      : plainTable('Your keys', columns, data.map((key) => keyRow(key, fill)), { actions: true }),
    has(KEYS, 'post') && h('div', { class: 'row' }, button('New key', () => newKey(me, fill)))
  ]
}

const TIME = { type: ['string', 'null'], format: 'date-time' }
const LINE = { type: 'string', format: 'line' }
const ATTRIBUTES = { type: ['object', 'null'] }
const ROLES = { type: 'array', items: { type: 'string' } }
const UNTIL = 'In your local time. Nothing: it does not end by itself, where that is allowed.'

function newKey(me, fill) {
  const roles = schemaOf('ApiKeyCreation')?.properties.domainRoles ?? ROLES
  return dialog('New personal key', (close) => form({
    fields: [
      { name: 'name', title: 'Name', schema: LINE, required: true, hint: 'What it is for.' },
      { name: 'domainRoles', title: 'Roles', schema: roles, hint: 'One on each line, of yours.' },
      { name: 'securityAttributes', title: 'Security attributes', schema: ATTRIBUTES, hint: 'As JSON, of yours.' },
      { name: 'expiresAt', title: 'Until', schema: TIME, hint: UNTIL }
    ],
    values: { domainRoles: me.roles, securityAttributes: me.securityAttributes },
    submit: 'Create',
    all: true,
    cancel: () => close(),
    save: async (said) => {
      const made = await post(KEYS, said)
      close()
      fill()
      await secret('Your new key', 'It is shown this once. Programs send it as X-API-Key.', { [made.name]: made.key })
    }
  }).node)
}

function sessionRow(one, fill) {
  const end = action('End', async () => {
    await request('DELETE', at`/auth/me/sessions/${one.id}`)
    await fill()
  }, { class: 'small', 'aria-label': `End the session from ${one.ip}` })
  return h('tr', null,
    h('th', { scope: 'row' }, one.userAgent ?? '–'),
    h('td', null, one.ip),
    h('td', null, value(one.createdAt, 'date-time')),
    h('td', null, value(one.lastUsedAt, 'date-time')),
    h('td', { class: 'right' }, one.current ? h('span', { class: 'chip' }, 'this one') : end))
}

async function sessions(fill) {
  const { data } = await get(SESSIONS)
  const others = action('End all others', async () => {
    await request('DELETE', SESSIONS)
    notify('Your other sessions have ended.')
    await fill()
  })
  return [
    plainTable('Your sessions', ['Program', 'Address', 'Since', 'Last used'],
      data.map((one) => sessionRow(one, fill)), { actions: true }),
    data.length > 1 && has(SESSIONS, 'delete') && h('div', { class: 'row' }, others)
  ]
}

export async function show({ state }) {
  const { me } = state
  if (me.accountKind !== 'USER') return [head('Own account'), empty('This is the account of a program.')]
  return [
    head('Own account'),
    who(me),
    secondFactor(),
    has(SESSIONS) && await part('Sessions', sessions),
    has(KEYS) && await part('Personal keys', (fill) => keys(me, fill)),
    has('/auth/change-password', 'post') && password(),
    has('/auth/me', 'patch') && profile(me, state)
  ]
}
