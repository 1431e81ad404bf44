// Parts that pages are made of: buttons, notices, dialogs, values.

import { h, newId, put, svg } from './element.js'
import { date, dateTime, number, pretty, shortId } from './text.js'

export function button(text, onclick, props = {}) {
  return h('button', { type: 'button', onclick, ...props }, text)
}

/** Does a work of a button once at a time; the button keeps the focus meanwhile, as "disabled" would not. */
export async function busy(node, work) {
  if (node.getAttribute('aria-disabled') === 'true') return
  node.setAttribute('aria-disabled', 'true')
  try {
    await work()
  } finally {
    node.removeAttribute('aria-disabled')
  }
}

/** A button that is busy while its work is under way; faults are told. */
export function action(text, work, props = {}) {
  const node = button(text, () => busy(node, work).catch(tell), props)
  return node
}

export const primary = (text, work, props) => action(text, work, { class: 'primary', ...props })

/** What went wrong, in words for people, with the id that the log knows. */
export function explain(error) {
  const unknown = 'It is not known whether this was saved. Reload and look before you try again.'
  const lines = {
    429: `Too many tries.${error.retryAfter ? ` Try again in ${error.retryAfter} seconds.` : ' Try again soon.'}`,
    503: error.code === 'OUTCOME_UNKNOWN' ? unknown : 'The service is busy, or its database away. Try again soon.'
  }
  const isOwn = error.status === undefined
  return lines[error.status] ?? (isOwn ? `The console has failed: ${error.message}` : error.message)
}

const notices = h('div', { class: 'notices', role: 'status', 'aria-live': 'polite' })
export const noticeArea = () => notices

/** All that is not in an open dialog is behind it, so notices go there; "home" is where they are otherwise. */
let home = null

function bringNotices() {
  const open = [...document.querySelectorAll('dialog[open]')].at(-1)
  if (!open || open.contains(notices)) return
  if (!notices.closest('dialog')) home = notices.parentNode
  open.append(notices)
}

/** Faults stay until one goes elsewhere. */
export const clearFaults = () => notices.querySelectorAll('.bad').forEach((line) => line.remove())

/** A line that goes by itself; one that offers something stays longer. */
export function notify(text, { kind = 'fine', offer, seconds = offer ? 15 : 6 } = {}) {
  const line = h('div', { class: `notice ${kind}` }, h('span', null, text),
    offer && button(offer.text, () => { line.remove(); offer.work() }, { class: 'link' }),
    button('×', () => line.remove(), { class: 'quiet', 'aria-label': 'Close' }))
  if (kind !== 'bad') notices.querySelectorAll('.fine').forEach((other) => other.remove())
  bringNotices()
  notices.append(line)
  if (kind !== 'bad') setTimeout(() => line.remove(), seconds * 1000)
}

export function tell(error) {
  if (error.name === 'AbortError') return
  notify(explain(error) + (error.id ? ` (request ${error.id})` : ''), { kind: 'bad' })
}

/** The same in the place of what could not be shown. */
export function failure(error, ...more) {
  return h('div', { class: 'empty bad', role: 'alert' },
    h('p', null, explain(error)),
    error.id && h('p', { class: 'muted' }, 'Request ', h('code', null, error.id)),
    more)
}

export function empty(text, ...more) {
  return h('div', { class: 'empty' }, h('p', null, text), more)
}

const opened = new Set()

/** What a SuperAdmin has to do first. */
export const noTenant = () => empty('Choose the tenant that you want to work in, at the top of the page.')

/**
 * A dialog; "make" gets the function that closes it, and returns what is in
 * it.  It goes when one goes elsewhere, but if it "stays".
 */
export function dialog(title, make, { wide, stays } = {}) {
  return new Promise((resolve) => {
    const id = newId()
    const node = h('dialog', { 'aria-labelledby': id, class: wide ? 'wide' : undefined })
    const close = (value) => {
      opened.delete(close)
      if (node.contains(notices)) home.append(notices)
      node.close()
      node.remove()
      resolve(value)
    }
    node.addEventListener('cancel', (event) => { event.preventDefault(); close() })
    put(node, h('h2', { id }, title), make(close))
    document.body.append(node)
    if (!stays) opened.add(close)
    node.showModal()
  })
}

/** Who goes elsewhere leaves them behind. */
export const closeDialogs = () => [...opened].forEach((close) => close())

export const confirm = (title, text, yes, props = { class: 'danger' }) => dialog(title, (close) => [
  h('p', null, text),
  h('div', { class: 'row end' }, button('Cancel', () => close(false)), button(yes, () => close(true), props))
])

/** What is shown this once: a key, a secret, a temporary password. */
export const secret = (title, text, values) => dialog(title, (close) => [
  h('p', null, text),
  Object.entries(values).map(([name, of]) => h('div', { class: 'field' }, h('span', { class: 'name' }, name),
    h('div', { class: 'row' }, h('code', { class: 'secret', tabindex: 0 }, of), copy(of)))),
  h('div', { class: 'row end' }, button('I have kept it', () => close(), { class: 'primary' }))
], { stays: true })

export function copy(text) {
  const node = button('Copy', async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'function' ? text() : text)
      node.textContent = 'Copied'
    } catch {
      node.textContent = 'Select it by hand'
    }
    setTimeout(() => { node.textContent = 'Copy' }, 2000)
  }, { class: 'small' })
  return node
}

export const time = (text) => h('time', { datetime: text, title: `${text} (UTC)` }, dateTime(text))

const LONG = 80
const cut = (text) => text.length > LONG ? `${text.slice(0, LONG)}…` : text

export const isFigure = (kind) => kind === 'number' || kind === 'integer'

/** A value of an attribute, as its schema says. */
export function value(of, kind, { short } = {}) {
  if (of === null || of === undefined) return h('span', { class: 'muted', title: 'no value' }, '–')
  if (kind === 'boolean') return h('span', { class: of ? 'yes' : 'no' }, of ? 'yes' : 'no')
  if (kind === 'date-time') return time(of)
  if (kind === 'date') return h('time', { datetime: of, title: of }, date(of))
  if (isFigure(kind)) return h('span', { class: 'figure' }, number(of))
  if (kind === 'uuid') return h('code', { title: of }, short ? shortId(of) : of)
  if (kind === 'enum') return h('span', { class: 'chip' }, of)
  if (kind === 'list') return of.map((item) => [h('span', { class: 'chip' }, item), ' '])
  if (typeof of === 'object') return short ? h('code', null, cut(JSON.stringify(of))) : h('pre', null, pretty(of))
  if (short) return String(of).length > LONG ? h('span', { title: of }, cut(String(of))) : String(of)
  return h('span', { class: 'prose' }, of)
}

/** A head with its title, which gets the focus when the page is shown. */
export function head(title, { over, under, tools } = {}) {
  return h('header', { class: 'head' },
    h('div', null,
      over && h('p', { class: 'over' }, over),
      h('h1', { tabindex: -1 }, title),
      under && h('p', { class: 'muted' }, under)),
    tools && h('div', { class: 'row tools' }, tools))
}

export function icon(path) {
  return svg('svg', { viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true' }, svg('path', { d: path }))
}

/** What may be wider than the page, and is scrolled by keyboard as well. */
export const scroller = (label, ...children) =>
  h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, children)

/** A table of names of columns and of rows; the last column may be for buttons, and has no name that is seen. */
export function plainTable(label, names, rows, { actions } = {}) {
  const heads = names.map((name) => h('th', { scope: 'col' }, name))
  if (actions) heads.push(h('th', { scope: 'col' }, h('span', { class: 'sr' }, 'Actions')))
  return scroller(label, h('table', null, h('thead', null, h('tr', null, heads)), h('tbody', null, rows)))
}

/** Names and values side by side. */
export const facts = (pairs) => h('dl', { class: 'facts' }, pairs.filter(Boolean).map(([name, of, title]) =>
  h('div', null, h('dt', { title }, name), h('dd', null, of))))

export function progress(label) {
  const bar = h('progress', { max: 100, value: 0, 'aria-label': label })
  const text = h('span', { class: 'muted' }, label)
  return {
    node: h('div', { class: 'row progress', role: 'status' }, bar, text),
    step(part, words) { bar.value = Math.round(part * 100); text.textContent = words }
  }
}

export function save(name, type, parts) {
  const url = URL.createObjectURL(new Blob(parts, { type }))
  const node = h('a', { href: url, download: name })
  document.body.append(node)
  node.click()
  node.remove()
  setTimeout(() => URL.revokeObjectURL(url), 60000)
}
