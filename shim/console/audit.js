// The audit log, newest first, with filters, and what comes in while one looks.

import { get } from './api.js'
import { h, put } from './element.js'
import { model } from './model.js'
import { go, link } from './route.js'
import { fromLocal, quote, shortId, toLocal, words } from './text.js'
import { action, empty, head, plainTable, tell, time, value } from './ui.js'

const EVERY = 2000
const SIZE = 30
const ACTIONS = [
  'ENTITY_CREATE', 'ENTITY_UPDATE', 'ENTITY_DELETE', 'ENTITY_RESTORE', 'RELATIONSHIP_ADD', 'RELATIONSHIP_REPLACE',
  'RELATIONSHIP_REMOVE', 'LOGIN', 'LOGOUT', 'TOKEN_REFRESH', 'REFRESH_REUSED', 'AUTHENTICATION', 'ACCESS_DENIED',
  'PASSWORD_CHANGED', 'USER_CREATED', 'USER_UPDATED', 'USER_DELETED', 'ROLES_CHANGED', 'INVITE_CREATED',
  'API_KEY_CREATED', 'MANIFEST_APPLIED'
]

/** What is asked for: name, title, what is compared, and an input. */
const FILTERS = [
  { name: 'action', title: 'Action', choices: ACTIONS },
  { name: 'outcome', title: 'Outcome', choices: ['SUCCESS', 'FAILURE', 'DENIED'] },
  { name: 'from', title: 'From', of: 'at', operator: '=ge=', type: 'datetime-local' },
  { name: 'to', title: 'To', of: 'at', operator: '=lt=', type: 'datetime-local' },
  { name: 'targetType', title: 'Resource type' },
  { name: 'targetId', title: 'Resource id' },
  { name: 'actorId', title: 'Account id' },
  { name: 'requestId', title: 'Request id' }
]

const filterOf = (query, more = []) => [
  ...FILTERS.filter(({ name }) => query[name])
    .map(({ name, of = name, operator = '==' }) => of + operator + quote(query[name])),
  ...more
].join(';') || undefined

function inputOf({ name, choices, type = 'text' }, chosen = '') {
  if (choices) {
    const all = [...new Set(['', ...choices, chosen])]
    return h('select', { name }, all.map((one) => h('option', { value: one, selected: one === chosen }, one || 'all')))
  }
  const isTime = type === 'datetime-local'
  return h('input', { name, type, step: isTime ? 1 : undefined, value: isTime && chosen ? toLocal(chosen) : chosen })
}

function filters(query) {
  const read = (inputs) => FILTERS.map(({ name, type }) => {
    const text = inputs[name].value.trim()
    return [name, type && text ? fromLocal(text) : text]
  })
  return h('form', {
    class: 'row ends', 'aria-label': 'Filter',
    onsubmit: (event) => {
      event.preventDefault()
      go(['audit'], Object.fromEntries(read(event.target.elements)))
    }
  },
  FILTERS.map((one) =>
    h('label', { class: 'field' }, h('span', { class: 'name' }, one.title), inputOf(one, query[one.name]))),
  h('div', { class: 'row' },
    h('button', { type: 'submit', class: 'primary' }, 'Show'),
    filterOf(query) && h('a', { class: 'button', href: link(['audit']) }, 'Show all')))
}

function target({ type, id }) {
  const entity = model.byType.get(type)
  if (!type) return value(null)
  if (entity && id) {
    return h('a', { href: link(['data', entity.collection, id]), title: id }, `${entity.single} ${shortId(id)}`)
  }
  return h('span', { title: id ?? '' }, words(type))
}

const text = (of) => of === null || of === undefined ? '–' : typeof of === 'object' ? JSON.stringify(of) : String(of)

function change([name, pair]) {
  const isPair = Array.isArray(pair) && pair.length === 2
  const what = isPair ? [h('del', null, text(pair[0])), ' → ', h('ins', null, text(pair[1]))] : text(pair)
  return h('div', null, h('dt', null, name), h('dd', null, what))
}

function changesOf(all) {
  const names = all.map(([name]) => name)
  return h('details', null,
    h('summary', null, all.length > 3 ? `${all.length} fields` : names.join(', ')),
    h('dl', { class: 'changes' }, all.map(change)))
}

/** Leads to what else there is of this. */
const more = (query, title, text) => h('a', { href: link(['audit'], query), title }, text)

function row({ at, actor, action: what, outcome, detail, target: of, changes, requestId, ip }) {
  const all = Object.entries(changes ?? {})
  const name = actor?.username ?? '–'
  return h('tr', null,
    h('td', null, time(at)),
    h('td', { class: 'whole' }, actor?.id ? more({ actorId: actor.id }, 'All that this account did', name) : name),
    h('td', null, h('code', null, what)),
    h('td', null, h('span', { class: `chip ${outcome}` }, outcome), detail && h('div', { class: 'hint' }, detail)),
    h('td', null, target(of ?? {})),
    h('td', null, all.length > 0 && changesOf(all)),
    h('td', null,
      requestId && more({ requestId }, `All of request ${requestId}`, requestId.slice(0, 8)),
      ip && h('div', { class: 'hint' }, ip)))
}

const COLUMNS = ['When', 'Who', 'Action', 'Outcome', 'What', 'Changes', 'Request']

export async function show({ query, signal, state, tenant }) {
  const shown = state.tenants.find(({ id }) => id === tenant)
  const place = shown ? [`tenantId==${tenant}`] : []
  const table = plainTable('Records', COLUMNS, [])
  const body = table.querySelector('tbody')
  const nothing = empty('Nothing like this is in the log.')
  const earlier = h('div', { class: 'row' })
  const seen = new Set()
  let newest = ''

  const take = (records, first) => {
    const fresh = records.filter(({ id }) => !seen.has(id))
    for (const { id, at } of fresh) {
      seen.add(id)
      if (at > newest) newest = at
    }
    first ? body.prepend(...fresh.map(row)) : body.append(...fresh.map(row))
    table.hidden = seen.size === 0
    nothing.hidden = seen.size > 0
  }

  const read = (conditions, page) =>
    get('/manage/audit', { filter: filterOf(query, [...place, ...conditions]), ...page }, { signal })

  /** A page may be short and yet not the last: only its cursor tells. */
  const load = async (after) => {
    let next = after
    let got = 0
    do {
      const { data, meta } = await read([], { 'page[size]': SIZE, 'page[after]': next })
      take(data)
      got += data.length
      next = meta.page.after
    } while (next && got === 0)
    put(earlier, next && action('Earlier records', () => load(next)))
  }

  const follow = h('input', { type: 'checkbox', onchange: () => { if (follow.checked) tail() } })
  const tail = async () => {
    while (follow.checked && !signal.aborted) {
      try {
        if (!document.hidden) take((await read(newest ? [`at=ge=${newest}`] : [], { 'page[size]': 100 })).data, true)
      } catch (error) {
        tell(error)
        follow.checked = false
      }
      await new Promise((resolve) => setTimeout(resolve, EVERY))
    }
  }

  await load()
  return [
    head('Audit log', {
      over: 'Administration',
      under: shown ? `Who did what in ${shown.name}, and what was refused.` : 'Who did what, and what was refused.',
      tools: h('label', { class: 'check' }, follow, ' Follow what comes in')
    }),
    filters(query), table, nothing, earlier
  ]
}
