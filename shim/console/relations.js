// The to-many relationships of a resource, each a table; members are put in
// and taken out there.

import { request } from './api.js'
import { h, put } from './element.js'
import { table } from './list.js'
import { isWritable, labelOf, may, model, permits } from './model.js'
import { picker } from './picker.js'
import { firstColumns, pathOf, read, shownRelationships } from './read.js'
import { link } from './route.js'
import { count, shortId } from './text.js'
import { action, failure, notify, primary } from './ui.js'

const SIZE = 10
const COLUMNS = 5

export function sections(entity, resource, ifMatch, signal) {
  const isRead = (type) => model.byType.has(type) && permits({ type }, 'read')
  return Promise.all(shownRelationships(entity)
    .filter(({ many, can, types }) => many && can.list && types.some(isRead))
    .map((relationship) => section({ entity, resource, relationship, ifMatch, signal })))
}

/** What leads back from a member. */
const backOf = (target, entity) => target.relationships.find((one) => !one.many && one.types.includes(entity.type))

const newMember = (target, back, { entity, resource }) => h('a', {
  class: 'button',
  href: link(['data', target.collection, 'new'], { [back.name]: resource.id, [`${back.name}.type`]: entity.type })
}, `New ${target.single.toLowerCase()}`)

async function section(of) {
  const { entity, resource, relationship, ifMatch, signal } = of
  const target = model.byType.get(relationship.types[0])
  const back = backOf(target, entity)
  const path = pathOf(entity, resource.id, 'relationships', relationship.name)
  const mayWrite = may(entity, 'update') && isWritable(entity.type, relationship.name) && !back?.required
  const columns = firstColumns(target, COLUMNS).filter((name) => name !== back?.name)
  const total = h('span', { class: 'muted' })
  const place = h('div', { class: 'stack' })
  let cursor = { 'page[after]': 'start' }

  /** A write counts as a change of the resource: it has another version then. */
  const write = async (method, { type, id }) => {
    const headers = method === 'DELETE' ? ifMatch(resource) : {}
    await request(method, path, { body: { data: [{ type, id }] }, headers })
    if (resource.meta?.version === undefined) return
    resource.meta = (await read(pathOf(entity, resource.id), entity, [], {})).data.meta
  }

  const remove = (one) => action('Remove', async () => {
    await write('DELETE', one)
    notify(`${labelOf(one) ?? shortId(one.id)} removed.`)
    await fill()
    title.focus()
  }, { class: 'small', 'aria-label': `Remove ${labelOf(one) ?? one.id}` })

  async function fill() {
    try {
      show(await read(pathOf(entity, resource.id, relationship.name), target, columns,
        { 'page[size]': SIZE, 'page[totals]': true, ...cursor }, { signal }))
    } catch (error) {
      if (error.name !== 'AbortError') put(place, failure(error))
    }
  }

  function show({ data, meta: { pagination: { before, after, totalRecords } } }) {
    const extra = mayWrite && relationship.can.remove ? remove : undefined
    total.textContent = totalRecords === undefined ? '' : ` ${totalRecords}`
    put(place,
      data.length > 0 ? table(target, data, columns, { caption: relationship.title, extra })
        : h('p', { class: 'muted' }, `No ${relationship.title.toLowerCase()} yet.`),
      (before || after) && h('nav', { class: 'row pages', 'aria-label': `Pages of ${relationship.title}` },
        h('span', { class: 'muted grow' }, count(totalRecords, 'row')),
        step('‹', 'Page before', { 'page[before]': before }, before),
        step('›', 'Next page', { 'page[after]': after }, after)))
  }

  const step = (text, label, to, on) =>
    action(text, () => { cursor = to; return fill() }, { 'aria-label': label, disabled: !on })

  const adding = h('div', { class: 'row' })
  function offer() {
    const props = { 'aria-label': `Add to ${relationship.title.toLowerCase()}` }
    const chosen = picker({ ...relationship, many: false, required: false }, props, null)
    put(adding, chosen.node, primary('Add', async () => {
      const one = chosen.get()
      if (!one) return chosen.focus.focus()
      await write('POST', one)
      notify('Added.')
      await fill()
      offer().focus()
    }))
    return chosen.focus
  }

  if (mayWrite && relationship.can.add) offer()
  const title = h('h2', { class: 'grow', tabindex: -1 }, relationship.title, total)
  await fill()
  return h('section', { class: 'panel stack', 'aria-label': relationship.title },
    h('div', { class: 'row' }, title, back && may(target, 'create') && newMember(target, back, of)),
    place,
    adding.firstChild && adding)
}
