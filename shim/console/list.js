// The resources of an entity: a table with filter, sort, columns and pages.

import { h, put } from './element.js'
import { filterBuilder } from './filter.js'
import { entityOf, labelOf, may, mayShowDeleted, model } from './model.js'
import { firstColumns, linkTo, read, shownFields } from './read.js'
import { go, link } from './route.js'
import { count, shortId } from './text.js'
import { exportButton, importButton } from './transfer.js'
import { action, empty, head, icon, isFigure, noTenant, scroller, value } from './ui.js'

const SIZES = [25, 50, 100]
const FILTER = 'M3 5h18l-7 8v6l-4 2v-8z'
const LONG = 24

const attributeOf = (entity, name) => entity.attributes.find((one) => one.name === name)
const fieldOf = (entity, name) => attributeOf(entity, name) ?? entity.relationships.find((one) => one.name === name)
const align = (entity, name) => isFigure(attributeOf(entity, name)?.kind) ? 'right' : undefined

/** The cell of a column: a value, or what a relationship leads to. */
function cell(entity, resource, name) {
  const attribute = attributeOf(entity, name)
  return attribute ? value(resource.attributes?.[name], attribute.kind, { short: true })
    : linkTo(resource.relationships?.[name]?.data)
}

/** The name leads to the resource, or else the first column with a value of its own. */
const leading = (entity, columns) =>
  columns.find((name) => name === entity.label?.name) ?? columns.find((name) => attributeOf(entity, name)) ?? columns[0]

function leadingCell(entity, resource, name) {
  const isLabel = name === entity.label?.name
  const query = resource.meta?.deletedAt ? { deleted: 'with' } : {}
  return h('a', {
    href: link(['data', entity.collection, resource.id], query),
    class: (labelOf(resource) ?? '').length > LONG ? 'first' : 'first whole'
  }, isLabel ? labelOf(resource) ?? shortId(resource.id) : cell(entity, resource, name))
}

function heading(entity, name, { sort, onsort }) {
  const { title = name, kind } = fieldOf(entity, name) ?? {}
  const sortable = onsort && kind && !['json', 'list'].includes(kind)
  const way = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined
  const mark = { ascending: ' ↑', descending: ' ↓' }[way] ?? ''
  const turn = () => onsort(way === 'ascending' ? `-${name}` : name)
  return h('th', { scope: 'col', 'aria-sort': way, class: align(entity, name), title: name },
    sortable ? h('button', { type: 'button', class: 'sort', onclick: turn }, title, mark) : title)
}

function row(entity, resource, columns, extra) {
  const leads = leading(entity, columns)
  return h('tr', { class: resource.meta?.deletedAt ? 'deleted' : undefined },
    columns.map((name) => h('td', { class: align(entity, name) },
      name === leads ? leadingCell(entity, resource, name) : cell(entity, resource, name))),
    extra && h('td', { class: 'right' }, extra(resource)))
}

/** A table of resources; used by pages of one resource as well. */
export function table(entity, resources, columns, { sort, onsort, extra, caption }) {
  const heads = columns.map((name) => heading(entity, name, { sort, onsort }))
  if (extra) heads.push(h('th', { scope: 'col' }, h('span', { class: 'sr' }, 'Actions')))
  return scroller(caption, h('table', null,
    h('caption', { class: 'sr' }, caption),
    h('thead', null, h('tr', null, heads)),
    h('tbody', null, resources.map((resource) => row(entity, resource, columns, extra)))))
}

function columnChoice(entity, columns, chosen) {
  const box = (name) => h('input', {
    type: 'checkbox',
    checked: columns.includes(name),
    onchange: ({ target }) => chosen(target.checked ? [...columns, name] : columns.filter((one) => one !== name))
  })
  return h('details', { class: 'menu' }, h('summary', null, 'Columns'),
    h('fieldset', { class: 'panel stack' }, h('legend', { class: 'sr' }, 'Columns'),
      shownFields(entity).map(({ name, title }) => h('label', { class: 'check' }, box(name), ' ', title))))
}

const choice = (options, chosen, onchange) => h('select', { onchange: ({ target }) => onchange(target.value) },
  options.map(([of, text]) => h('option', { value: of, selected: of === chosen }, text)))

function pages(meta, move) {
  const { before, after, totalRecords, size } = meta.pagination
  const step = (text, label, to, on) =>
    h('button', { type: 'button', 'aria-label': label, disabled: !on, onclick: () => move(to) }, text)
  return h('nav', { class: 'row pages', 'aria-label': 'Pages' },
    h('span', { class: 'muted grow' }, totalRecords === undefined ? '' : count(totalRecords, 'row')),
    h('label', { class: 'row tight' }, h('span', { class: 'muted' }, 'Rows'),
      choice(SIZES.map((one) => [one, one]), size, (of) => move({ size: of }))),
    step('«', 'First page', {}, before),
    step('‹', 'Page before', { before }, before),
    step('›', 'Next page', { after }, after),
    step('»', 'Last page', { before: 'end' }, after))
}

const DELETED = [['', 'hidden'], ['with', 'shown, too'], ['only', 'alone']]

const deletedChoice = (query, move) => h('label', { class: 'row tight' }, h('span', { class: 'muted' }, 'Deleted'),
  choice(DELETED, query.deleted ?? '', (deleted) => move({ deleted })))

/** The page of the service that the address names. */
function load(entity, columns, query, signal) {
  return read(entity.base, entity, columns, {
    filter: query.filter, sort: query.sort, 'show[deleted]': query.deleted,
    'page[size]': query.size ?? SIZES[0], 'page[totals]': true,
    ...(query.before ? { 'page[before]': query.before } : { 'page[after]': query.after ?? 'start' })
  }, { signal })
}

/** What stands where the table would be. */
function refusal(error, entity, query) {
  const all = (text) => h('a', { class: 'button', href: link(['data', entity.collection]) }, text)
  if (error.code === 'TENANT_REQUIRED') return noTenant()
  if (error.status === 403 && query.deleted) {
    model.refused.add(`restore ${entity.type}`)
    return empty('Your roles do not let you see what was deleted.', all('Show the others'))
  }
  if (error.status === 403) {
    model.refused.add(`read ${entity.type}`)
    return empty('Your roles do not let you read these.', h('a', { class: 'button', href: '#/' }, 'To the beginning'))
  }
  if (error.status !== 400) throw error
  return h('div', { class: 'empty bad', role: 'alert' }, h('p', null, error.message), all('Show all'))
}

function nothing(entity, query, create) {
  const all = h('a', { class: 'button', href: link(['data', entity.collection]) }, 'Show all')
  if (query.filter) return empty('Nothing matches this filter.', all)
  if (query.before || query.after) return empty('This page is empty by now.', all)
  if (query.deleted === 'only') return empty('Nothing here has been deleted.', all)
  const title = entity.title.toLowerCase()
  return may(entity, 'create') ? empty(`There are no ${title} yet.`, create())
    : empty(`There are no ${title} that you may see.`)
}

export async function show({ parts: [, collection], query, signal }) {
  const entity = entityOf(collection)
  if (!entity) return [head('Nothing here'), empty('There is no such entity.', h('a', { href: '#/' }, 'All entities'))]
  // another order, filter or size begins at the first page
  const move = (change) => go(['data', collection], { ...query, after: undefined, before: undefined, ...change })
  const columns = query.columns ? query.columns.split(',') : firstColumns(entity)
  const title = (tools) => head(entity.title, { over: 'Data', under: entity.description, tools })
  const create = () => may(entity, 'create') &&
    h('a', { class: 'button primary', href: link(['data', collection, 'new']) }, `New ${entity.single.toLowerCase()}`)

  let document
  try {
    document = await load(entity, columns, query, signal)
  } catch (error) {
    const said = refusal(error, entity, query)
    return [title(), error.status === 400 && error.code !== 'TENANT_REQUIRED' && panel(entity, query, move, true), said]
  }
  const known = shownFields(entity).map(({ name }) => name)
  return [
    title([create(), importButton(entity), exportButton(entity, query)]),
    panel(entity, query, move, false, [
      columnChoice(entity, columns, (chosen) => go(['data', collection], { ...query, columns: chosen.join(',') })),
      mayShowDeleted(entity) && deletedChoice(query, move)
    ]),
    document.data.length === 0 ? nothing(entity, query, create)
      : table(entity, document.data, columns.filter((name) => known.includes(name)),
        { sort: query.sort, onsort: (sort) => move({ sort }), caption: entity.title }),
    pages(document.meta, move)
  ]
}

/** The line above the table, with the filter below it while it is open. */
function panel(entity, query, move, isOpen, more) {
  const place = h('div')
  const toggle = action([icon(FILTER), query.filter ? 'Change filter' : 'Filter'], () => {
    if (!place.firstChild) return open().focus()
    toggle.setAttribute('aria-expanded', 'false')
    put(place)
  }, { 'aria-expanded': 'false' })
  const open = () => {
    const builder = filterBuilder(entity, query.filter, (filter) => move({ filter }))
    toggle.setAttribute('aria-expanded', 'true')
    put(place, builder.node)
    return builder
  }
  if (isOpen) open()
  const none = link(['data', entity.collection], { ...query, filter: undefined, after: undefined, before: undefined })
  return h('div', { class: 'stack' },
    h('div', { class: 'row bar' }, toggle,
      query.filter && h('code', { class: 'filter' }, query.filter),
      query.filter && h('a', { href: none, class: 'button quiet', 'aria-label': 'Remove the filter' }, '×'),
      h('span', { class: 'grow' }), more),
    place)
}
