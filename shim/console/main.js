// The beginning: who one is, and which page an address leads to.

import { AWAY, ApiError, acting, at, get, resume, watch } from './api.js'
import { h, put } from './element.js'
import { isUnsaved } from './form.js'
import { closeMenu, drawMenu, drawTop, frame, page, theme } from './frame.js'
import { change, gate } from './login.js'
import { has, load, loadPermissions } from './model.js'
import { here } from './route.js'
import { button, clearFaults, closeDialogs, confirm, empty, failure, head } from './ui.js'

const root = document.getElementById('root')
const TENANT = 'entityapi.tenant'
const WATCH = 30000
const TENANTS = 100

const state = { me: null, tenants: [] }
const tenant = () => state.me.tenantId ?? acting.tenant

/** A module that could not be read once is not read again by a browser, until the page is loaded anew. */
const read = (path) => import(path).catch(() => { throw Object.assign(new ApiError(0, [AWAY]), { isLost: true }) })
const shown = (path) => () => read(path).then(({ show }) => show)

/** Pages of data, by what follows the collection: an id or "new", and "history". */
const data = {
  list: shown('./list.js'),
  history: shown('./history.js'),
  one: shown('./record.js'),
  new: () => read('./record.js').then(({ showNew }) => showNew)
}

/** Pages by the first part of their address; each is read when it is needed. */
const pages = {
  '': shown('./home.js'),
  data: ({ parts: [, , id, what] }) => id === undefined ? data.list()
    : what === 'history' ? data.history() : id === 'new' ? data.new() : data.one(),
  explorer: shown('./explorer.js'),
  declarations: shown('./declarations.js'),
  account: shown('./account.js'),
  manage: shown('./manage.js'),
  audit: shown('./audit.js'),
  explain: shown('./explain.js'),
  system: shown('./system.js')
}

let under = null
let isFirst = true
let before = null
let shownAt = ''

/** What an element is called, to find it on a page that is drawn anew. */
function nameOf(node) {
  const text = node.getAttribute('aria-label') ?? node.labels?.[0]?.textContent ?? node.textContent
  return page.contains(node) && node.tagName + text.replace(/ [↑↓]$/, '')
}

const toBeginning = () => h('a', { class: 'button', href: '#/' }, 'To the beginning')

/** The page of a route, whatever becomes of it; null where one has gone elsewhere. */
async function make(route) {
  const { signal } = route
  const find = Object.hasOwn(pages, route.parts[0] ?? '') && pages[route.parts[0] ?? '']
  try {
    if (!find) return [head('Nothing here'), empty('There is no such page.', toBeginning())]
    const made = await (await find(route))(route)
    return signal.aborted ? null : made
  } catch (error) {
    if (signal.aborted || error.name === 'AbortError') return null
    if (error.code === 'PASSWORD_CHANGE_REQUIRED') return start().then(() => null)
    return error.status === 404
      ? [head('Nothing here'), empty('There is nothing here, or nothing that you may see.', toBeginning())]
      : [head('That did not work'), failure(error, button('Try again', error.isLost ? () => location.reload() : show))]
  }
}

/** Shows the page of the address; the old one stays until the new one is there. */
async function show() {
  under?.abort()
  under = new AbortController()
  const { signal } = under
  const { hash } = location
  const route = { ...here(), signal, state, tenant: tenant(), redraw: drawFrame, work }
  page.setAttribute('aria-busy', 'true')
  closeMenu()
  closeDialogs()
  drawMenu(state.me, tenant())
  const made = await make(route)
  if (made === null) return
  const address = route.parts.join('/')
  const isSame = before === address
  const focused = isSame && nameOf(document.activeElement)
  before = address
  shownAt = hash
  put(page, made)
  clearFaults()
  page.setAttribute('aria-busy', 'false')
  drawMenu(state.me, tenant())
  const title = page.querySelector('h1')
  document.title = `${title.textContent} · entityapi`
  if (isFirst) isFirst = false
  else focus(title, focused)
  if (!isSame) window.scrollTo(0, 0)
}

const UNSAVED = 'What you put in has not been saved, and would be lost.'

/** Goes where the address leads; what was put in is not lost by a slip: one is asked, and may stay. */
async function leave() {
  const to = location.hash
  closeDialogs()
  if (!isUnsaved(page) || await confirm('Leave the form?', UNSAVED, 'Leave')) return show()
  if (location.hash === to) history.replaceState(null, '', shownAt || '#/')
}

/** Where one was, on a page that is drawn anew; else the heading of the page. */
function focus(title, name) {
  if (page.contains(document.activeElement) || document.querySelector('dialog[open]')) return
  const all = [...page.querySelectorAll('button, select, summary, input[type=checkbox]')]
  const again = name && all.find((node) => nameOf(node) === name)
  const menu = again && again.closest('details')
  if (menu && again.tagName === 'INPUT') menu.open = true
  const target = again || title
  target.focus({ preventScroll: true })
}

/** A SuperAdmin works in a tenant, or in none. */
async function work(id) {
  acting.tenant = id
  if (id) sessionStorage.setItem(TENANT, id)
  else sessionStorage.removeItem(TENANT)
  await drawFrame()
  await show()
}

/** The first tenants, and in any case the one that is worked in. */
async function loadTenants() {
  const query = { sort: 'name', 'page[size]': TENANTS, 'page[totals]': false }
  state.tenants = (await get('/manage/tenants', query)).data
  if (!acting.tenant || state.tenants.some(({ id }) => id === acting.tenant)) return
  const other = await get(at`/manage/tenants/${acting.tenant}`).catch(() => null)
  if (other) state.tenants.push(other)
  else acting.tenant = null
}

async function drawFrame() {
  if (state.me.isSuperAdmin && has('/manage/tenants')) await loadTenants()
  drawTop(state, work)
  drawMenu(state.me, tenant())
}

const isDue = ({ scope }) => scope?.includes('FORCE_CHANGE')

async function start() {
  state.me = await get('/auth/me')
  if (isDue(state.me)) {
    await change(root, 'A new password is due')
    state.me = await get('/auth/me')
  }
  acting.tenant = state.me.isSuperAdmin ? sessionStorage.getItem(TENANT) : null
  await Promise.all([loadPermissions(), drawFrame()])
  put(root, frame())
  await show()
}

const rightsOf = ({ roles, isTenantAdmin, isSuperAdmin }) => JSON.stringify([roles, isTenantAdmin, isSuperAdmin])

/** A session that was ended elsewhere, and other roles, are noticed while one looks, and when one comes back. */
function watchSession() {
  const look = async () => {
    const me = document.hidden ? null : await watch()
    if (!me || rightsOf(me) === rightsOf(state.me)) return
    state.me = me
    await loadPermissions()
    await drawFrame()
  }
  setInterval(look, WATCH)
  document.addEventListener('visibilitychange', look)
}

async function begin() {
  theme()
  try {
    const loading = load()
    if (!await resume()) await gate(root, loading)
    await loading
    await start()
    window.addEventListener('hashchange', leave)
    window.addEventListener('beforeunload', (event) => { if (isUnsaved(page)) event.preventDefault() })
    watchSession()
  } catch (error) {
    put(root, h('main', { class: 'gate' }, failure(error),
      h('button', { type: 'button', class: 'primary', onclick: () => location.reload() }, 'Try again')))
  }
}

begin()
