// The beginning: who one is, the frame around all pages, and which page an
// address leads to.

import { acting, get, logout, resume } from './api.js'
import { h, put } from './element.js'
import { change, gate } from './login.js'
import { has, load, model } from './model.js'
import { here, link } from './route.js'
import { clearFaults, empty, failure, icon, noticeArea } from './ui.js'

const root = document.getElementById('root')
const TENANT = 'entityapi.tenant'
const THEME = 'entityapi.theme'
const IDLE_CHECK = 30000

const MENU = 'M3 6h18M3 12h18M3 18h18'
const THEMES = ['auto', 'light', 'dark']

const state = { me: null, tenants: [] }

const isAdmin = () => state.me.isSuperAdmin || state.me.isTenantAdmin
const tenant = () => state.me.tenantId ?? acting.tenant

/** Pages by the first part of their address; each is read when it is needed. */
const pages = {
  '': () => import('./home.js').then(({ show }) => show),
  data: ({ parts }) => parts.length > 3 && parts[3] === 'history' ? import('./history.js').then(({ show }) => show)
    : parts.length > 2 ? import('./record.js').then(({ show, showNew }) => parts[2] === 'new' ? showNew : show)
      : import('./list.js').then(({ show }) => show),
  explorer: () => import('./explorer.js').then(({ show }) => show),
  declarations: () => import('./declarations.js').then(({ show }) => show),
  account: () => import('./account.js').then(({ show }) => show),
  manage: () => import('./manage.js').then(({ show }) => show),
  audit: () => import('./audit.js').then(({ show }) => show),
  explain: () => import('./explain.js').then(({ show }) => show),
  system: () => import('./system.js').then(({ show }) => show)
}

/** What the menu offers: as far as the service has it, and this user may. */
function menu() {
  const of = (kind) => tenant() && has(`/manage/tenants/{id}/${kind}`)
  return [
    ['Data', model.entities.filter(({ type }) => !model.refused.has(`read ${type}`)).map(({ title, collection }) => [title, ['data', collection]])],
    ['API', [['Declarations', ['declarations']], ['Explorer', ['explorer']]]],
    isAdmin() && ['Administration', [
      state.me.isSuperAdmin && has('/manage/tenants') && ['Tenants', ['manage', 'tenants']],
      of('users') && ['Users', ['manage', 'users']],
      of('invites') && ['Invites', ['manage', 'invites']],
      of('service-accounts') && ['Service accounts', ['manage', 'service-accounts']],
      of('personal-api-keys') && ['Personal keys', ['manage', 'personal-api-keys']],
      (of('settings/personal-api-keys') || state.me.isSuperAdmin) && ['Settings', ['manage', 'settings']],
      has('/manage/audit') && ['Audit log', ['audit']],
      has('/manage/explain', 'post') && ['Why not?', ['explain']]
    ]],
    ['Service', [
      state.me.isSuperAdmin && has('/manage/migrations/status') && ['Migrations', ['system', 'migrations']],
      has('/actuator/health') && ['Health', ['system', 'health']]
    ]]
  ].filter(Boolean).map(([title, items]) => [title, items.filter(Boolean)]).filter(([, items]) => items.length > 0)
}

const side = h('nav', { class: 'side', id: 'menu', 'aria-label': 'Main' })
const top = h('div', { class: 'top' })
const page = h('main', { id: 'page' })

function drawMenu() {
  const now = here().parts
  const isHere = (parts) => parts.every((part, i) => now[i] === part)
  put(side, h('a', { class: 'brand', href: '#/' }, 'entityapi'),
    menu().map(([title, items]) => h('section', null, h('h2', null, title),
      h('ul', null, items.map(([text, parts]) => h('li', null, h('a', { href: link(parts), 'aria-current': isHere(parts) ? 'page' : undefined }, text)))))))
}

function tenantChoice() {
  if (!state.me.isSuperAdmin || !has('/manage/tenants')) return null
  return h('label', { class: 'row tight' }, h('span', { class: 'muted' }, 'Tenant'), h('select', {
    'aria-label': 'Tenant',
    onchange: (event) => {
      acting.tenant = event.target.value || null
      if (acting.tenant) sessionStorage.setItem(TENANT, acting.tenant)
      else sessionStorage.removeItem(TENANT)
      model.hidden.clear()
      model.refused.clear()
      show()
    }
  }, h('option', { value: '' }, 'choose one'), state.tenants.map(({ id, name }) => h('option', { value: id, selected: id === acting.tenant }, name))))
}

function theme(name) {
  if (name === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = name
  localStorage.setItem(THEME, name)
}

function drawTop() {
  const toggle = h('button', {
    type: 'button', class: 'quiet only-narrow', 'aria-controls': 'menu', 'aria-expanded': 'false', 'aria-label': 'Menu',
    onclick: () => toggle.setAttribute('aria-expanded', String(side.classList.toggle('open')))
  }, icon(MENU))
  put(top, toggle, h('span', { class: 'grow' }), tenantChoice(),
    h('details', { class: 'menu' }, h('summary', null, state.me.username),
      h('div', { class: 'panel stack' },
        h('p', { class: 'muted' }, state.me.isSuperAdmin ? 'SuperAdmin' : [state.me.isTenantAdmin && 'TenantAdmin', ...state.me.roles].filter(Boolean).join(', ') || 'no roles'),
        h('a', { href: link(['account']) }, 'Own account'),
        h('label', { class: 'row tight' }, 'Colours', h('select', { onchange: (event) => theme(event.target.value) },
          THEMES.map((name) => h('option', { value: name, selected: name === (localStorage.getItem(THEME) ?? 'auto') }, name)))),
        h('button', { type: 'button', onclick: logout }, 'Log out'))))
}

let under = null
let isFirst = true
let shown = null

/** What an element is called, to find it on a page that is drawn anew. */
const nameOf = (node) => page.contains(node) && node.tagName + (node.getAttribute('aria-label') ?? node.textContent.replace(/ [↑↓]$/, ''))

/** Shows the page of the address; the old one stays until the new one is there. */
async function show() {
  under?.abort()
  under = new AbortController()
  const { signal } = under
  const route = { ...here(), signal, state, tenant: tenant(), redraw: drawFrame }
  const make = pages[route.parts[0] ?? '']
  page.setAttribute('aria-busy', 'true')
  side.classList.remove('open')
  top.querySelector('[aria-controls]')?.setAttribute('aria-expanded', 'false')
  drawMenu()
  let made
  try {
    made = make ? await (await make(route))(route) : empty('There is no such page.', h('a', { href: '#/' }, 'To the beginning'))
  } catch (error) {
    if (signal.aborted || error.name === 'AbortError') return
    if (error.code === 'PASSWORD_CHANGE_REQUIRED') return start()
    made = error.status === 404 ? empty('There is nothing here, or nothing that you may see.', h('a', { class: 'button', href: '#/' }, 'To the beginning')) : failure(error)
  }
  if (signal.aborted) return
  const same = shown === route.parts.join('/')
  const focused = same && nameOf(document.activeElement)
  shown = route.parts.join('/')
  put(page, made)
  clearFaults()
  page.setAttribute('aria-busy', 'false')
  drawMenu()
  const title = page.querySelector('h1')
  document.title = title ? `${title.textContent} · entityapi` : 'entityapi'
  const again = focused && [...page.querySelectorAll('button, select, summary')].find((node) => nameOf(node) === focused)
  if (!isFirst && !page.contains(document.activeElement)) (again || title)?.focus({ preventScroll: true })
  if (!isFirst && !same) window.scrollTo(0, 0)
  isFirst = false
}

async function drawFrame() {
  if (state.me.isSuperAdmin && has('/manage/tenants')) {
    state.tenants = (await get('/manage/tenants', { sort: 'name', 'page[size]': 100, 'page[totals]': false })).data
    if (!state.tenants.some(({ id }) => id === acting.tenant)) acting.tenant = null
  }
  drawTop()
  drawMenu()
}

async function start() {
  state.me = await get('/auth/me')
  if (state.me.scope?.includes('FORCE_CHANGE')) {
    await change(root, 'A new password is due')
    state.me = await get('/auth/me')
  }
  acting.tenant = state.me.isSuperAdmin ? sessionStorage.getItem(TENANT) : null
  await drawFrame()
  put(root, h('a', { class: 'skip', href: '#page', onclick: (event) => { event.preventDefault(); page.querySelector('h1')?.focus() } }, 'To the content'),
    h('div', { class: 'frame' }, side, h('div', { class: 'main' }, top, noticeArea(), page)))
  await show()
}

/** A session that was ended elsewhere is noticed when one comes back. */
let seen = 0
document.addEventListener('visibilitychange', () => {
  if (document.hidden || !state.me || performance.now() - seen < IDLE_CHECK) return
  seen = performance.now()
  get('/auth/me').catch(() => {})
})

document.addEventListener('click', (event) => {
  for (const open of document.querySelectorAll('details.menu[open]')) if (!open.contains(event.target)) open.open = false
})

async function begin() {
  const chosen = localStorage.getItem(THEME)
  if (THEMES.includes(chosen)) theme(chosen)
  try {
    const loading = load()
    if (!await resume()) await gate(root, loading)
    await loading
    await start()
    window.addEventListener('hashchange', show)
  } catch (error) {
    put(root, h('main', { class: 'gate' }, failure(error), h('button', { type: 'button', class: 'primary', onclick: () => location.reload() }, 'Try again')))
  }
}

begin()
