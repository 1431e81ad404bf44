// The second factor, where the service has one: a code at the login, and its
// set-up and removal in one's own account.

import { post, request } from './api.js'
import { h, put } from './element.js'
import { form } from './form.js'
import { has } from './model.js'
import { action, notify, secret } from './ui.js'

const TOTP = '/auth/me/totp'
const CONFIRM = '/auth/me/totp/confirm'

const code = {
  name: 'code', title: 'Code', required: true, schema: { type: 'string', format: 'line' }, autocomplete: 'one-time-code'
}

/** What is told once, whatever its members are called. */
const told = (answer) => Object.fromEntries(Object.entries(answer ?? {})
  .filter(([, of]) => typeof of === 'string' || Array.isArray(of))
  .map(([name, of]) => [name, [of].flat().join('\n')]))

/** A form for the code of a login that waits for it. */
export const codeForm = (finish) => form({
  fields: [{ ...code, hint: 'Of your authenticator, or one of your recovery codes.' }],
  submit: 'Log in',
  save: (said) => finish(said.code ?? '')
})

async function setUp(place) {
  const made = await post(TOTP)
  await secret('Your second factor', 'Put this into your authenticator, then enter the code that it shows.', told(made))
  const confirming = form({
    fields: [{ ...code, hint: 'That your authenticator shows now.' }],
    submit: 'Switch it on',
    save: async (said) => {
      const codes = await post(CONFIRM, { code: said.code ?? '' })
      notify('The second factor is on.')
      put(place, buttons(place))
      await secret('Your recovery codes', 'Each lets you in once, without your authenticator.', told(codes))
    }
  })
  put(place, h('div', { class: 'narrow' }, confirming.node))
  confirming.focus()
}

function takeAway(place) {
  const leaving = form({
    fields: [{ ...code, hint: 'That your authenticator shows now.' }],
    submit: 'Switch it off',
    cancel: () => put(place, buttons(place)),
    save: async (said) => {
      await request('DELETE', TOTP, { body: { code: said.code ?? '' } })
      notify('The second factor is off.')
      put(place, buttons(place))
    }
  })
  put(place, h('div', { class: 'narrow' }, leaving.node))
  leaving.focus()
}

const buttons = (place) => h('div', { class: 'row' },
  action('Set one up', () => setUp(place)),
  has(TOTP, 'delete') && action('Switch it off', () => takeAway(place)))

/** The part of one's own account; nothing where the service has none. */
export function secondFactor() {
  if (!has(TOTP, 'post')) return null
  const place = h('div')
  return h('section', { class: 'panel stack', 'aria-label': 'Second factor' },
    h('h2', null, 'Second factor'),
    h('p', { class: 'muted' }, 'A code of your authenticator is asked for at each login, besides the password.'),
    put(place, buttons(place)))
}
