// The to-many relationships of a resource, each a table; members are put in
// and taken out there.

import { request } from './api.js'
import { h, put } from './element.js'
import { table } from './list.js'
import { labelOf, model } from './model.js'
import { picker } from './picker.js'
import { firstColumns, pathOf, read, shownRelationships } from './read.js'
import { link } from './route.js'
import { count, shortId } from './text.js'
import { action, failure, notify, primary } from './ui.js'

const SIZE = 10

export function sections(entity, resource, ifMatch, signal) {
  return Promise.all(shownRelationships(entity)
    .filter(({ many, can, types }) => many && can.list && types.some((type) => model.byType.has(type)))
    .map((relationship) => section(entity, resource, relationship, ifMatch, signal)))
}

async function section(entity, resource, relationship, ifMatch, signal) {
  const target = model.byType.get(relationship.types[0])
  const path = pathOf(entity, resource.id, 'relationships', relationship.name)
  const back = target.relationships.find((one) => !one.many && one.types.includes(entity.type))
  const total = h('span', { class: 'muted' })
  const place = h('div', { class: 'stack' })
  let cursor = { 'page[after]': 'start' }

  /** A write counts as a change of the resource: it has another version then. */
  const write = async (method, one) => {
    await request(method, path, { body: { data: [{ type: one.type, id: one.id }] }, headers: method === 'DELETE' ? ifMatch(resource) : {} })
    if (resource.meta?.version !== undefined) resource.meta = (await read(pathOf(entity, resource.id), entity, [], {})).data.meta
  }

  const remove = (one) => action('Remove', async () => {
    await write('DELETE', one)
    notify(`${labelOf(one) ?? shortId(one.id)} removed.`)
    await fill()
  }, { class: 'small', 'aria-label': `Remove ${labelOf(one) ?? one.id}` })

  async function fill() {
    try {
      const found = await read(pathOf(entity, resource.id, relationship.name), target, firstColumns(target, 5).filter((name) => name !== back?.name), {
        'page[size]': SIZE, 'page[totals]': true, ...cursor
      }, { signal })
      show(found)
    } catch (error) {
      if (error.name !== 'AbortError') put(place, failure(error))
    }
  }

  function show({ data, meta }) {
    const { before, after, totalRecords } = meta.pagination
    const columns = firstColumns(target, 5).filter((name) => name !== back?.name)
    const step = (text, label, to, on) => action(text, () => { cursor = to; return fill() }, { 'aria-label': label, disabled: !on })
    total.textContent = totalRecords === undefined ? '' : ` ${totalRecords}`
    put(place,
      data.length > 0 ? table(target, data, columns, { caption: relationship.title, extra: relationship.can.remove && !back?.required ? remove : undefined })
        : h('p', { class: 'muted' }, `No ${relationship.title.toLowerCase()} yet.`),
      (before || after) && h('nav', { class: 'row pages', 'aria-label': `Pages of ${relationship.title}` },
        h('span', { class: 'muted grow' }, count(totalRecords, 'row')),
        step('‹', 'Page before', { 'page[before]': before }, before), step('›', 'Next page', { 'page[after]': after }, after)))
  }

  function adder() {
    const chosen = picker({ ...relationship, many: false, required: false }, { 'aria-label': `Add to ${relationship.title.toLowerCase()}` }, null)
    return h('div', { class: 'row' }, chosen.node, primary('Add', async () => {
      const one = chosen.get()
      if (!one) return chosen.focus.focus()
      await write('POST', one)
      notify('Added.')
      node.replaceWith(await section(entity, resource, relationship, ifMatch, signal))
    }))
  }

  const node = h('section', { class: 'panel stack', 'aria-label': relationship.title },
    h('div', { class: 'row' }, h('h2', { class: 'grow' }, relationship.title, total),
      back && target.can.create && h('a', { class: 'button', href: link(['data', target.collection, 'new'], { [back.name]: resource.id, [`${back.name}.type`]: entity.type }) },
        `New ${target.single.toLowerCase()}`)),
    place,
    relationship.can.add && !back?.required && adder())
  await fill()
  return node
}
