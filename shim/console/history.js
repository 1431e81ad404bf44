// What became of a resource, newest first, and how it was at each time.

import { get } from './api.js'
import { h, put } from './element.js'
import { entityOf, inOrder, model } from './model.js'
import { nameOf, pathOf } from './read.js'
import { link } from './route.js'
import { shortId, words } from './text.js'
import { action, empty, head, time, value } from './ui.js'

const SIZE = 25
const DONE = {
  ENTITY_CREATE: 'Created', ENTITY_UPDATE: 'Changed', ENTITY_DELETE: 'Deleted', ENTITY_RESTORE: 'Restored'
}

const done = (name) => DONE[name] ?? words(String(name).toLowerCase())

const linkTo = (one) => nameOf(one) ?? `${model.byType.get(one.type)?.single ?? one.type} ${shortId(one.id)}`

/** A value of a field as the log has it: of a relationship to many, ids. */
function shown(of, { kind, many, types }) {
  const isLink = of && typeof of === 'object' && of.id && of.type
  if (isLink) return linkTo(of)
  if (!many || !Array.isArray(of)) return value(of, kind, { short: true })
  return of.length === 0 ? 'none' : of.map((id) => linkTo({ type: types[0], id })).join(', ')
}

/** What was there before, but of something new, and what came. */
function change(entity, isNew, { name, from, to }) {
  const field = [...entity.attributes, ...entity.relationships].find((one) => one.name === name) ?? {}
  const before = [h('del', null, shown(from, field)), h('span', { role: 'img', 'aria-label': 'became' }, ' → ')]
  return h('div', null, h('dt', { title: name }, field.title ?? words(name)),
    h('dd', null, !isNew && before, h('ins', null, shown(to, field))))
}

const told = (changes) => Object.entries(changes ?? {}).map(([name, one]) => ({ name, ...one }))

function entry(entity, id, { attributes: { at, action: what, actor, changes, version } }) {
  const isNew = what === 'ENTITY_CREATE'
  const who = typeof actor === 'object' ? actor?.username ?? actor?.kind : actor
  const isPast = entity.can.asOf && what !== 'ENTITY_DELETE'
  return h('li', null,
    h('p', null, h('strong', null, done(what)), who && ` by ${who}`, ' · ', time(at),
      version !== undefined && version !== null && h('span', { class: 'muted' }, ` · version ${version}`)),
    h('dl', { class: 'changes' }, inOrder(entity, told(changes)).map((one) => change(entity, isNew, one))),
    isPast && h('a', { href: link(['data', entity.collection, id], { asOf: at }) }, 'As it was then'))
}

const nextOf = ({ meta, links }) => meta?.pagination?.after ??
  (links?.next ? new URLSearchParams(links.next.split('?')[1]).get('page[after]') : null)

export async function show({ parts: [, collection, id], signal }) {
  const entity = entityOf(collection)
  if (!entity?.can.history) return [head('History'), empty('There is no history of these.')]
  const back = link(['data', collection, id])
  const list = h('ol', { class: 'timeline' })
  const more = h('div')
  const load = async (after) => {
    const document = await get(pathOf(entity, id, 'history'), { 'page[size]': SIZE, 'page[after]': after }, { signal })
    const next = nextOf(document)
    list.append(...document.data.map((item) => entry(entity, id, item)))
    put(more, next && action('Earlier changes', () => load(next)))
    return document.data.length
  }
  let some
  try {
    some = await load()
  } catch (error) {
    if (error.status !== 403) throw error
    model.refused.add(`history ${entity.type}`)
    return [head('History'),
      empty('Your roles do not let you read what was done to this.', h('a', { class: 'button', href: back }, 'Back'))]
  }
  const over = [h('a', { href: link(['data', collection]) }, entity.title), ' · ',
    h('a', { href: back }, nameOf({ type: entity.type, id }) ?? shortId(id))]
  return [head('History', { over }), some > 0 ? list : empty('Nothing is known of its past.'), more]
}
