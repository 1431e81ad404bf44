// The frame around all pages: the menu, and what stands above each page.

import { acting, logout } from './api.js'
import { h, put } from './element.js'
import { has, model, permits } from './model.js'
import { here, link } from './route.js'
import { icon, noticeArea } from './ui.js'

const MENU = 'M3 6h18M3 12h18M3 18h18'
const THEME = 'entityapi.theme'
const THEMES = ['auto', 'light', 'dark']

const side = h('nav', { class: 'side', id: 'menu', 'aria-label': 'Main' })
const top = h('div', { class: 'top' })
export const page = h('main', { id: 'page' })

/** What the menu offers: as far as the service has it, and this user may. */
function menu(me, tenant) {
  const of = (kind) => tenant && has(`/manage/tenants/{id}/${kind}`)
  const kind = (title, name) => of(name) && [title, ['manage', name]]
  const entities = model.entities.filter((entity) => permits(entity, 'read'))
  const parts = [
    ['Data', entities.map(({ title, collection }) => [title, ['data', collection]])],
    ['API', [['Declarations', ['declarations']], ['Explorer', ['explorer']]]],
    (me.isSuperAdmin || me.isTenantAdmin) && ['Administration', [
      me.isSuperAdmin && has('/manage/tenants') && ['Tenants', ['manage', 'tenants']],
      kind('Users', 'users'),
      kind('Invites', 'invites'),
      kind('Service accounts', 'service-accounts'),
      kind('Personal keys', 'personal-api-keys'),
      kind('Webhooks', 'webhooks'),
      (of('settings/personal-api-keys') || me.isSuperAdmin) && ['Settings', ['manage', 'settings']],
      has('/manage/audit') && ['Audit log', ['audit']],
      has('/manage/explain', 'post') && ['Why not?', ['explain']]
    ]],
    ['Service', [
      me.isSuperAdmin && has('/manage/migrations/status') && ['Migrations', ['system', 'migrations']],
      has('/actuator/health') && ['Health', ['system', 'health']]
    ]]
  ]
  return parts.filter(Boolean).map(([title, items]) => [title, items.filter(Boolean)])
    .filter(([, items]) => items.length > 0)
}

export function drawMenu(me, tenant) {
  const now = here().parts
  const isHere = (parts) => parts.every((part, i) => now[i] === part)
  const item = ([text, parts]) => h('li', null,
    h('a', { href: link(parts), 'aria-current': isHere(parts) ? 'page' : undefined }, text))
  put(side, h('a', { class: 'brand', href: '#/' }, 'entityapi'),
    menu(me, tenant).map(([title, items]) =>
      h('section', null, h('h2', null, title), h('ul', null, items.map(item)))))
}

/** On narrow windows the menu goes when one has chosen. */
export function closeMenu() {
  side.classList.remove('open')
  top.querySelector('[aria-controls]')?.setAttribute('aria-expanded', 'false')
}

function menuButton() {
  const toggle = h('button', {
    type: 'button', class: 'quiet only-narrow', 'aria-controls': 'menu', 'aria-expanded': 'false', 'aria-label': 'Menu',
    onclick: () => toggle.setAttribute('aria-expanded', String(side.classList.toggle('open')))
  }, icon(MENU))
  return toggle
}

const tenantChoice = (tenants, work) => h('label', { class: 'row tight' },
  h('span', { class: 'muted' }, 'Tenant'),
  h('select', { 'aria-label': 'Tenant', onchange: (event) => work(event.target.value || null) },
    h('option', { value: '' }, 'choose one'),
    tenants.map(({ id, name }) => h('option', { value: id, selected: id === acting.tenant }, name))))

function paint(name) {
  if (name === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = name
  localStorage.setItem(THEME, name)
}

const chosen = () => localStorage.getItem(THEME) ?? THEMES[0]

/** The colours that were chosen in this browser. */
export function theme() {
  if (THEMES.includes(chosen())) paint(chosen())
}

const colours = () => h('label', { class: 'row tight' }, 'Colours',
  h('select', { onchange: (event) => paint(event.target.value) },
    THEMES.map((name) => h('option', { value: name, selected: name === chosen() }, name))))

function authority({ isSuperAdmin, isTenantAdmin, roles }) {
  if (isSuperAdmin) return 'SuperAdmin'
  return [isTenantAdmin && 'TenantAdmin', ...roles].filter(Boolean).join(', ') || 'no roles'
}

export function drawTop({ me, tenants }, work) {
  put(top, menuButton(), h('span', { class: 'grow' }),
    me.isSuperAdmin && has('/manage/tenants') && tenantChoice(tenants, work),
    h('details', { class: 'menu' },
      h('summary', null, h('span', { class: 'cut' }, me.username)),
      h('div', { class: 'panel stack' },
        h('p', { class: 'muted' }, authority(me)),
        h('a', { href: link(['account']) }, 'Own account'),
        colours(),
        h('button', { type: 'button', onclick: logout }, 'Log out'))))
}

function skip(event) {
  event.preventDefault()
  page.querySelector('h1')?.focus()
}

export const frame = () => [
  h('a', { class: 'skip', href: '#page', onclick: skip }, 'To the content'),
  h('div', { class: 'frame' }, side, h('div', { class: 'main' }, top, noticeArea(), page))
]

/** A menu is closed by Escape, and by what happens elsewhere. */
function closeOpen(target, back) {
  for (const open of document.querySelectorAll('details.menu[open]')) {
    if (open.contains(target) && !back) continue
    open.open = false
    if (back) open.querySelector('summary').focus()
  }
}

document.addEventListener('click', ({ target }) => closeOpen(target, false))
document.addEventListener('focusin', ({ target }) => closeOpen(target, false))
document.addEventListener('keydown', ({ key }) => { if (key === 'Escape') closeOpen(null, true) })
