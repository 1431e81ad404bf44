// Who is not logged in: the login, a change of the password that is due, and
// the acceptance of an invite.

import { changePassword, login, loginByCode, post, takeReason } from './api.js'
import { h, put } from './element.js'
import { codeForm } from './factor.js'
import { form } from './form.js'
import { has } from './model.js'
import { button, noticeArea } from './ui.js'

const REASONS = {
  ended: 'Your session has ended: it was idle for long, or ended elsewhere. Log in again.',
  left: 'You are logged out.'
}

const DUE = 'The password that you have was made by somebody else. Choose one that only you know.'
const GOOD = '12 to 128 characters, and not a common one.'

const line = { type: 'string', format: 'line' }
const words = { type: 'string', format: 'password' }
const needed = (name, title, schema, autocomplete) => ({ name, title, schema, required: true, autocomplete, hint: '' })

function frame(title, ...children) {
  return h('main', { class: 'gate' }, noticeArea(), h('div', { class: 'panel stack' },
    h('p', { class: 'brand' }, 'entityapi'), h('h1', { tabindex: -1 }, title), children))
}

/** Shows the login in "root"; resolves when somebody is logged in.  "loading" is the description's way here. */
export function gate(root, loading) {
  return new Promise((resolve) => {
    const reason = takeReason()
    const invite = () => {
      const made = acceptance(() => shown())
      put(root, frame('Accept an invite', made.node, button('Back to the login', () => shown(), { class: 'link' })))
      made.focus()
    }
    const shown = () => {
      const made = form({
        fields: [
          needed('username', 'Username', line, 'username'),
          needed('password', 'Password', words, 'current-password')
        ],
        submit: 'Log in',
        save: async ({ username = '', password = '' }) => {
          const first = await login(username, password)
          const pair = first.mfaRequired ? await secondStep(root, first) : first
          if (pair.forcePasswordChange) await change(root, 'A new password is due', password)
          resolve()
        }
      })
      const more = h('div', { class: 'more' })
      const why = reason && h('p', { class: 'banner', role: 'status' }, REASONS[reason])
      const offer = () => has('/auth/accept-invite', 'post') &&
        put(more, button('I have an invite', invite, { class: 'link' }))
      put(root, frame('Log in', why, made.node, more))
      loading.then(offer, () => {})
      made.focus()
    }
    shown()
  })
}

/** The code of who has a second factor. */
function secondStep(root, { mfaToken }) {
  return new Promise((resolve) => {
    const made = codeForm(async (code) => resolve(await loginByCode(mfaToken, code)))
    const back = button('Back to the login', () => location.reload(), { class: 'link' })
    put(root, frame('Second factor', made.node, back))
    made.focus()
  })
}

/** The forced change; the password that was just typed need not be typed again. */
export function change(root, title, current) {
  return new Promise((resolve) => {
    const made = form({
      fields: passwordFields(current === undefined),
      submit: 'Change the password',
      save: async (said) => {
        check(said)
        await changePassword(current ?? said.currentPassword ?? '', said.newPassword ?? '')
        resolve()
      }
    })
    put(root, frame(title, h('p', null, DUE), made.node))
    made.focus()
  })
}

export const passwordFields = (withCurrent = true) => [
  withCurrent && needed('currentPassword', 'Current password', words, 'current-password'),
  { ...needed('newPassword', 'New password', words, 'new-password'), hint: GOOD },
  needed('again', 'The new password again', words, 'new-password')
].filter(Boolean)

export function check({ newPassword, again }) {
  if (newPassword !== again) throw { faults: [{ detail: 'The two are not the same.', source: { pointer: '/again' } }] }
}

function acceptance(done) {
  return form({
    fields: [
      needed('token', 'Token of the invite', line), needed('username', 'Username', line, 'username'),
      { ...needed('password', 'Password', words, 'new-password'), hint: GOOD }
    ],
    submit: 'Create the account',
    save: async (said) => {
      await post('/auth/accept-invite', said, { anonymous: true })
      done()
    }
  })
}
