// The records of administration: one table for all kinds.

import { get, post } from './api.js'
import { h } from './element.js'
import { KINDS, ask, fieldsOf } from './kinds.js'
import { bodyOf, deref, has, kindOf, schemaOf } from './model.js'
import { go } from './route.js'
import { anywhere, count, words } from './text.js'
import { action, button, dialog, empty, head, noTenant, plainTable, value } from './ui.js'

const SIZE = 25

function cell(kind, one, name) {
  const shown = kind.kinds?.[name] ?? kindOf(deref(schemaOf(kind.record)?.properties[name] ?? { type: 'string' }))
  if (shown === 'enum') return h('span', { class: `chip ${one[name]}` }, one[name])
  return shown === 'list' && one[name]?.length === 0 ? value(null) : value(one[name], shown, { short: true })
}

/** What can be done to a record, in a dialog. */
function actionsOf(kind, one, base, page) {
  const fit = kind.actions.filter(({ when, needs }) => (when?.(one, page.me) ?? true) && (!needs || has(...needs)))
  const name = one[Object.keys(kind.columns)[0]]
  if (fit.length === 0) return null
  const choose = (close) => fit.map(({ text, danger, run }) => action(text, () => {
    close()
    return run(one, base, page)
  }, { class: danger ? 'danger' : undefined }))
  return button('Actions', () => dialog(name, (close) =>
    [choose(close), h('div', { class: 'row end' }, button('Close', () => close()))]),
  { class: 'small', 'aria-label': `Actions on ${name}` })
}

function row(kind, one, base, page) {
  const cells = Object.keys(kind.columns).map((name, i) =>
    h(i === 0 ? 'th' : 'td', i === 0 ? { scope: 'row' } : null, cell(kind, one, name)))
  return h('tr', null, cells, h('td', { class: 'right' }, actionsOf(kind, one, base, page)))
}

/** A form for a new one; a tenant may be made together with its first administrator. */
function creation(kind, base, { hints, again }) {
  const { title, without, admin } = kind.create
  const fields = fieldsOf(bodyOf(kind.path, 'post'), { without, hints })
  const more = admin ? fieldsOf(schemaOf(admin), { hints }).map((field) => ({
    ...field, name: `admin.${field.name}`, title: `Administrator: ${field.title.toLowerCase()}`, required: false
  })) : []
  return ask(title, [...fields, ...more], {}, 'Create', (said) => post(base, nested(said)), again)
}

/** { 'admin.username': x } is { admin: { username: x } } */
function nested(said) {
  const body = {}
  for (const [name, given] of Object.entries(said)) {
    const [first, second] = name.split('.')
    if (second) (body[first] ??= {})[second] = given
    else body[first] = given
  }
  return body
}

function search(kind, found, move) {
  const label = `Find by ${words(kind.search).toLowerCase()}`
  const box = h('input', { type: 'search', value: found ?? '', 'aria-label': label, placeholder: label })
  return h('form', {
    class: 'row', role: 'search',
    onsubmit: (event) => { event.preventDefault(); move({ find: box.value, page: undefined }) }
  }, box, h('button', { type: 'submit' }, 'Find'))
}

const pages = ({ number, totalPages, totalRecords }, move) => h('nav', { class: 'row pages', 'aria-label': 'Pages' },
  h('span', { class: 'muted grow' }, count(totalRecords, 'row')),
  button('‹', () => move({ page: number - 1 }), { disabled: number <= 1, 'aria-label': 'Page before' }),
  h('span', null, `${number} of ${Math.max(1, totalPages)}`),
  button('›', () => move({ page: number + 1 }), { disabled: number >= totalPages, 'aria-label': 'Next page' }))

/** Nothing tells which roles there are; those in use are a help. */
function hintsFrom(data) {
  const roles = [...new Set(data.flatMap((one) => one.roles ?? []))].sort()
  return roles.length > 0 ? { roles: `Names of roles, one on each line. In use here: ${roles.join(', ')}.` } : {}
}

export async function show({ parts: [, name], query, signal, state, tenant, redraw, work }) {
  if (name === 'settings') return import('./settings.js').then((module) => module.show({ state, tenant, signal }))
  const kind = KINDS[name]
  if (!kind || !has(kind.path)) return [head('Nothing here'), empty('There is no such page.')]
  if (!tenant && !kind.alone) return [head(kind.title), noTenant()]
  const base = kind.base(tenant)
  const move = (change) => go(['manage', name], { ...query, ...change })
  const again = async () => {
    if (kind.alone) await redraw()
    move({})
  }
  const { data, meta } = await get(base, {
    filter: query.find ? `${kind.search}=ilike=${anywhere(query.find)}` : undefined,
    sort: query.sort ?? Object.keys(kind.columns)[0], 'page[size]': SIZE, 'page[number]': query.page
  }, { signal })
  const page = { me: state.me, hints: hintsFrom(data), again, work }
  const create = kind.create && has(kind.path, 'post') &&
    button(kind.create.title, () => creation(kind, base, page), { class: 'primary' })
  return [
    head(kind.title, { over: 'Administration', tools: create }),
    search(kind, query.find, move),
    data.length === 0 ? empty(query.find ? 'Nothing is called so.' : kind.empty)
      : plainTable(kind.title, Object.values(kind.columns), data.map((one) => row(kind, one, base, page)),
        { actions: true }),
    pages(meta.pagination, move)
  ]
}
