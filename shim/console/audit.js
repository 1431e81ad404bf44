// The audit log, newest first, with filters, and what comes in while one looks.

import { get } from './api.js'
import { h, put } from './element.js'
import { model } from './model.js'
import { go, link } from './route.js'
import { quote, shortId, words } from './text.js'
import { action, empty, head, tell, time, value } from './ui.js'

const EVERY = 2000
const SIZE = 30
const FIELDS = [
  ['action', 'Action', ['', 'ENTITY_CREATE', 'ENTITY_UPDATE', 'ENTITY_DELETE', 'LOGIN', 'LOGOUT', 'AUTHENTICATION', 'ACCESS_DENIED', 'PASSWORD_CHANGED',
    'USER_CREATED', 'USER_UPDATED', 'USER_DELETED', 'ROLES_CHANGED', 'API_KEY_CREATED', 'MANIFEST_APPLIED']],
  ['outcome', 'Outcome', ['', 'SUCCESS', 'FAILURE', 'DENIED']],
  ['actorId', 'Id of who'], ['targetId', 'Id of what'], ['requestId', 'Id of the request']
]

const filterOf = (query, more = []) => [
  ...FIELDS.filter(([name]) => query[name]).map(([name]) => `${name}==${quote(query[name])}`), ...more
].join(';') || undefined

function filters(query) {
  return h('form', {
    class: 'row', 'aria-label': 'Filter',
    onsubmit: (event) => {
      event.preventDefault()
      go(['audit'], Object.fromEntries(FIELDS.map(([name]) => [name, event.target.elements[name].value.trim()])))
    }
  }, FIELDS.map(([name, title, choices]) => choices
    ? h('select', { name, 'aria-label': title }, [...new Set([...choices, query[name] ?? ''])].map((one) => h('option', { value: one, selected: one === (query[name] ?? '') }, one || `${title}: all`)))
    : h('input', { name, 'aria-label': title, placeholder: title, value: query[name] ?? '', class: 'mono' })),
  h('button', { type: 'submit', class: 'primary' }, 'Show'))
}

function target({ type, id }) {
  const entity = model.byType.get(type)
  if (!type) return value(null)
  if (entity && id) return h('a', { href: link(['data', entity.collection, id]), title: id }, `${entity.single} ${shortId(id)}`)
  return h('span', { title: id ?? '' }, words(type))
}

const text = (of) => of === null || of === undefined ? '–' : typeof of === 'object' ? JSON.stringify(of) : String(of)

function row(one) {
  const changes = Object.entries(one.changes ?? {})
  return h('tr', null,
    h('td', null, time(one.at)),
    h('td', { class: 'whole' }, h('span', { title: one.actor?.id ?? '' }, one.actor?.username ?? '–')),
    h('td', null, h('code', null, one.action)),
    h('td', null, h('span', { class: `chip ${one.outcome}` }, one.outcome), one.detail && h('div', { class: 'hint' }, one.detail)),
    h('td', null, target(one.target ?? {})),
    h('td', null, changes.length > 0 && h('details', null, h('summary', null, changes.length > 3 ? `${changes.length} fields` : changes.map(([name]) => name).join(', ')),
      h('dl', { class: 'changes' }, changes.map(([name, pair]) => h('div', null, h('dt', null, name),
        h('dd', null, Array.isArray(pair) && pair.length === 2 ? [h('del', null, text(pair[0])), ' → ', h('ins', null, text(pair[1]))] : text(pair))))))),
    h('td', null, one.requestId && h('a', { href: link(['audit'], { requestId: one.requestId }), title: one.requestId }, one.requestId.slice(0, 8)), one.ip && h('div', { class: 'hint' }, one.ip)))
}

export async function show({ query, signal }) {
  const body = h('tbody')
  const more = h('div', { class: 'row' })
  const seen = new Set()
  let newest = ''

  const take = (records, first) => {
    const fresh = records.filter(({ id }) => !seen.has(id))
    for (const { id, at } of fresh) {
      seen.add(id)
      if (at > newest) newest = at
    }
    first ? body.prepend(...fresh.map(row)) : body.append(...fresh.map(row))
  }

  /** A page may be short and yet not the last: only its cursor tells. */
  const load = async (after) => {
    let next = after
    let got = 0
    do {
      const { data, meta } = await get('/manage/audit', { filter: filterOf(query), 'page[size]': SIZE, 'page[after]': next }, { signal })
      take(data)
      got += data.length
      next = meta.page.after
    } while (next && got === 0)
    put(more, next && action('Earlier records', () => load(next)))
  }

  const follow = h('input', { type: 'checkbox', onchange: () => { if (follow.checked) tail() } })
  const tail = async () => {
    while (follow.checked && !signal.aborted) {
      try {
        if (!document.hidden) {
          const { data } = await get('/manage/audit', { filter: filterOf(query, newest ? [`at=ge=${newest}`] : []), 'page[size]': 100 }, { signal })
          take(data, true)
        }
      } catch (error) {
        tell(error)
        follow.checked = false
      }
      await new Promise((resolve) => setTimeout(resolve, EVERY))
    }
  }

  await load()
  return [
    head('Audit log', { over: 'Administration', under: 'Who did what, and what was refused.', tools: h('label', { class: 'check' }, follow, ' Follow what comes in') }),
    filters(query),
    body.children.length === 0 ? empty('Nothing like this is in the log.')
      : h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Records' }, h('table', null,
        h('thead', null, h('tr', null, ['When', 'Who', 'Action', 'Outcome', 'What', 'Changes', 'Request'].map((name) => h('th', { scope: 'col' }, name)))), body)),
    more
  ]
}
