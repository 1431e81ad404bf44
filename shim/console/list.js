// The resources of an entity: a table with filter, sort, columns and pages.

import { h, put } from './element.js'
import { filterBuilder } from './filter.js'
import { entityOf, labelOf, model } from './model.js'
import { firstColumns, nameOf, read, shownAttributes, shownRelationships } from './read.js'
import { go, link } from './route.js'
import { count, shortId } from './text.js'
import { exportButton, importButton } from './transfer.js'
import { action, empty, head, icon, value } from './ui.js'
import { acting } from './api.js'

const SIZES = [25, 50, 100]
const FILTER = 'M3 5h18l-7 8v6l-4 2v-8z'

/** The cell of a column: a value, or what a relationship leads to. */
function cell(entity, resource, name) {
  const attribute = entity.attributes.find((one) => one.name === name)
  if (attribute) return value(resource.attributes?.[name], attribute.kind, { short: true })
  const data = resource.relationships?.[name]?.data
  if (Array.isArray(data)) return String(data.length)
  if (!data) return value(null)
  const target = model.byType.get(data.type)
  const text = nameOf(data) ?? shortId(data.id)
  return target ? h('a', { href: link(['data', target.collection, data.id]) }, text) : text
}

/** A table of resources; used by pages of one resource as well. */
export function table(entity, resources, columns, { sort, onsort, extra, caption }) {
  const kindOf = (name) => entity.attributes.find((one) => one.name === name)?.kind
  const titleOf = (name) => (entity.attributes.find((one) => one.name === name) ?? entity.relationships.find((one) => one.name === name))?.title ?? name
  const heading = (name) => {
    const sortable = onsort && kindOf(name) && !['json', 'list'].includes(kindOf(name))
    const way = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined
    const mark = { ascending: ' ↑', descending: ' ↓' }[way] ?? ''
    return h('th', { scope: 'col', 'aria-sort': way, class: isFigure(kindOf(name)) ? 'right' : undefined, title: name },
      sortable ? h('button', { type: 'button', class: 'sort', onclick: () => onsort(way === 'ascending' ? `-${name}` : name) }, titleOf(name), mark) : titleOf(name))
  }
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', null,
      h('caption', { class: 'sr' }, caption),
      h('thead', null, h('tr', null, columns.map(heading), extra && h('th', { scope: 'col' }, h('span', { class: 'sr' }, 'Actions')))),
      h('tbody', null, resources.map((resource) => h('tr', { class: resource.meta?.deletedAt ? 'deleted' : undefined },
        columns.map((name, i) => h('td', { class: isFigure(kindOf(name)) ? 'right' : undefined },
          i > 0 ? cell(entity, resource, name)
            : h('a', { href: link(['data', entity.collection, resource.id], resource.meta?.deletedAt ? { deleted: 'with' } : {}), class: (labelOf(resource) ?? '').length > 24 ? 'first' : 'first whole' },
              name === entity.label?.name ? labelOf(resource) ?? shortId(resource.id) : cell(entity, resource, name)))),
        extra && h('td', { class: 'right' }, extra(resource)))))))
}

const isFigure = (kind) => kind === 'number' || kind === 'integer'

function columnChoice(entity, columns, chosen) {
  const all = [...shownAttributes(entity), ...shownRelationships(entity).filter(({ many }) => !many)]
  return h('details', { class: 'menu' }, h('summary', null, 'Columns'),
    h('fieldset', { class: 'panel stack' }, h('legend', { class: 'sr' }, 'Columns'),
      all.map(({ name, title }) => h('label', { class: 'check' },
        h('input', {
          type: 'checkbox',
          checked: columns.includes(name),
          onchange: (event) => chosen(event.target.checked ? [...columns, name] : columns.filter((one) => one !== name))
        }), ' ', title))))
}

function pages(query, meta, move) {
  const { before, after, totalRecords, size } = meta.pagination
  const step = (text, label, change, on) => h('button', { type: 'button', 'aria-label': label, disabled: !on, onclick: () => move(change) }, text)
  return h('nav', { class: 'row pages', 'aria-label': 'Pages' },
    h('span', { class: 'muted grow' }, totalRecords === undefined ? '' : count(totalRecords, 'row')),
    h('label', { class: 'row tight' }, h('span', { class: 'muted' }, 'Rows'), h('select', {
      onchange: (event) => move({ size: event.target.value, after: undefined, before: undefined })
    }, SIZES.map((one) => h('option', { value: one, selected: one === size }, one)))),
    step('«', 'First page', { after: undefined, before: undefined }, before),
    step('‹', 'Page before', { before, after: undefined }, before),
    step('›', 'Next page', { after, before: undefined }, after),
    step('»', 'Last page', { before: 'end', after: undefined }, after))
}

export async function show({ parts: [, collection], query, signal }) {
  const entity = entityOf(collection)
  if (!entity) return [head('Nothing here'), empty('There is no such entity.', h('a', { href: '#/' }, 'All entities'))]
  const move = (change) => go(['data', collection], { ...query, ...change })
  const columns = query.columns ? query.columns.split(',') : firstColumns(entity)
  const title = (tools) => head(entity.title, { over: 'Data', under: entity.description, tools })
  const create = entity.can.create && !model.refused.has(`create ${entity.type}`) &&
    h('a', { class: 'button primary', href: link(['data', collection, 'new']) }, `New ${entity.single.toLowerCase()}`)

  let document
  try {
    document = await read(entity.base, entity, columns, {
      filter: query.filter, sort: query.sort, 'show[deleted]': query.deleted,
      'page[size]': query.size ?? SIZES[0], 'page[totals]': true,
      ...(query.before ? { 'page[before]': query.before } : { 'page[after]': query.after ?? 'start' })
    }, { signal })
  } catch (error) {
    if (error.code === 'TENANT_REQUIRED') return [title(), empty('Choose the tenant that you want to work in, at the top of the page.')]
    if (error.status === 403 && query.deleted) {
      model.refused.add(`restore ${entity.type}`)
      return [title(), empty('Your roles do not let you see what was deleted.', h('a', { class: 'button', href: link(['data', collection]) }, 'Show the others'))]
    }
    if (error.status === 403) {
      model.refused.add(`read ${entity.type}`)
      return [title(), empty('Your roles do not let you read these.', h('a', { href: '#/' }, 'All entities'))]
    }
    if (error.status !== 400) throw error
    return [title(), panel(entity, query, move, true), h('div', { class: 'empty bad', role: 'alert' }, h('p', null, error.message),
      h('a', { class: 'button', href: link(['data', collection]) }, 'Show all'))]
  }

  const deleted = entity.can.deleted && !model.refused.has(`restore ${entity.type}`) && h('label', { class: 'row tight' }, h('span', { class: 'muted' }, 'Deleted'), h('select', {
    onchange: (event) => move({ deleted: event.target.value, after: undefined, before: undefined })
  }, [['', 'hidden'], ['with', 'shown, too'], ['only', 'alone']].map(([name, text]) => h('option', { value: name, selected: name === (query.deleted ?? '') }, text))))
  const options = { sort: query.sort, onsort: (sort) => move({ sort, after: undefined, before: undefined }), caption: entity.title }
  const shown = columns.filter((name) => [...shownAttributes(entity), ...shownRelationships(entity)].some((one) => one.name === name))
  return [
    title([create, importButton(entity), exportButton(entity, query)]),
    panel(entity, query, move, false, [columnChoice(entity, columns, (chosen) => move({ columns: chosen.join(',') })), deleted]),
    document.data.length > 0 ? table(entity, document.data, shown, options)
      : query.filter ? empty('Nothing matches this filter.', h('a', { class: 'button', href: link(['data', collection]) }, 'Show all'))
        : query.deleted === 'only' ? empty('Nothing here has been deleted.')
          : empty(acting.tenant === undefined ? '' : `There are no ${entity.title.toLowerCase()} yet.`, create && create.cloneNode(true)),
    pages(query, document.meta, move)
  ]
}

/** The line above the table, with the filter below it while it is open. */
function panel(entity, query, move, isOpen, more) {
  const place = h('div')
  const apply = (filter) => move({ filter, after: undefined, before: undefined })
  const open = () => {
    toggle.setAttribute('aria-expanded', 'true')
    put(place, filterBuilder(entity, query.filter, apply))
  }
  const toggle = action([icon(FILTER), query.filter ? 'Change filter' : 'Filter'], () => {
    if (place.firstChild) {
      toggle.setAttribute('aria-expanded', 'false')
      put(place)
    } else open()
  }, { 'aria-expanded': 'false' })
  if (isOpen) open()
  return h('div', { class: 'stack' }, h('div', { class: 'row bar' }, toggle,
    query.filter && h('code', { class: 'filter' }, query.filter),
    query.filter && h('a', { href: link(['data', entity.collection], { ...query, filter: undefined, after: undefined, before: undefined }), 'aria-label': 'Remove the filter' }, '×'),
    h('span', { class: 'grow' }), more), place)
}
