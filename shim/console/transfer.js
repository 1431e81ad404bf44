// Many resources at once: out into a file page by page, and in by operations,
// some hundred of which are done together or not at all.

import { get, post } from './api.js'
import { h, put } from './element.js'
import { has, model } from './model.js'
import { fieldsFor, shownAttributes, shownRelationships } from './read.js'
import { Exact, count, parse } from './text.js'
import { action, button, dialog, notify, progress, save } from './ui.js'

const PAGE = 100
const BATCH = 100

/** A cell of CSV (RFC 4180); what a spreadsheet would run is made text. */
export function cell(value) {
  const text = value === null || value === undefined ? '' : typeof value === 'object' && !(value instanceof Exact) ? JSON.stringify(value) : String(value)
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The lines of a text of CSV as objects by the names of its first line. */
export function readCsv(text) {
  const rows = [[]]
  for (const [, quoted, bare, end] of `${text.trim()}\n`.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n)/g)) {
    rows.at(-1).push(quoted === undefined ? bare : quoted.replaceAll('""', '"'))
    if (end !== ',') rows.push([])
  }
  const [names, ...lines] = rows.filter((row) => row.length > 0)
  return lines.map((line) => Object.fromEntries(names.map((name, i) => [name.trim(), line[i] ?? ''])))
}

export function exportButton(entity, query) {
  return button('Export', () => dialog(`Export ${entity.title.toLowerCase()}`, (close) => {
    const area = h('div')
    let stopped = false
    const run = async (form) => {
      const bar = progress('Reading…')
      put(area, bar.node)
      const rows = await readAll(entity, query, bar, () => stopped)
      if (stopped) return
      form === 'csv' ? saveCsv(entity, rows) : save(`${entity.collection}.json`, 'application/json', [JSON.stringify(rows, null, 1)])
      notify(`${count(rows.length, 'row')} saved.`)
      close()
    }
    return [
      h('p', null, query.filter ? 'All rows of the filter, in the order of the table.' : 'All rows that you may read.'),
      area,
      h('div', { class: 'row end' }, button('Cancel', () => { stopped = true; close() }),
        action('As JSON', () => run('json')), action('As CSV', () => run('csv'), { class: 'primary' }))
    ]
  }))
}

async function readAll(entity, query, bar, isStopped) {
  const columns = [...shownAttributes(entity), ...shownRelationships(entity).filter(({ many }) => !many)].map(({ name }) => name)
  const fields = fieldsFor(entity, columns)
  const rows = []
  let after = 'start'
  let total
  while (after && !isStopped()) {
    const { data, meta } = await get(entity.base, {
      filter: query.filter, sort: query.sort, 'page[size]': PAGE, 'page[after]': after, 'page[totals]': total === undefined,
      [`fields[${entity.type}]`]: fields[`fields[${entity.type}]`]
    })
    rows.push(...data.map(({ type, id, attributes, relationships }) => ({ type, id, attributes, relationships: linked(relationships) })))
    total ??= meta.pagination.totalRecords
    after = meta.pagination.after
    bar.step(total > 0 ? rows.length / total : 1, `${rows.length} of ${total}`)
  }
  return rows
}

const linked = (relationships) => relationships &&
  Object.fromEntries(Object.entries(relationships).map(([name, { data }]) => [name, { data }]))

function saveCsv(entity, rows) {
  const attributes = shownAttributes(entity).map(({ name }) => name)
  const links = shownRelationships(entity).filter(({ many }) => !many).map(({ name }) => name)
  const lines = rows.map((row) => [row.id, ...attributes.map((name) => row.attributes?.[name]), ...links.map((name) => row.relationships?.[name]?.data?.id)])
  save(`${entity.collection}.csv`, 'text/csv', [[['id', ...attributes, ...links], ...lines].map((line) => `${line.map(cell).join(',')}\r\n`).join('')])
}

export function importButton(entity) {
  if (!entity.can.create || !has(`/api/v${model.version}/operations`, 'post') || model.refused.has(`create ${entity.type}`)) return null
  return button('Import', () => dialog(`Import ${entity.title.toLowerCase()}`, (close) => {
    const area = h('div', { role: 'alert' })
    const file = h('input', { type: 'file', accept: '.json,.csv,application/json,text/csv', 'aria-label': 'File' })
    return [
      h('p', null, `A file of CSV whose first line has names of fields, or what "Export" saved as JSON. Each row becomes a new ${entity.single.toLowerCase()}; ids of the file are not used.`),
      h('p', { class: 'hint' }, `${BATCH} rows are done together, or none of them.`),
      file, area,
      h('div', { class: 'row end' }, button('Close', () => close()), action('Import', async () => {
        if (!file.files[0]) return put(area, h('p', { class: 'fault' }, 'Choose a file.'))
        await run(entity, await file.files[0].text(), area, close)
      }, { class: 'primary' }))
    ]
  }))
}

async function run(entity, text, area, close) {
  let rows
  try {
    rows = /^\s*[[{]/.test(text) ? [parse(text)].flat() : readCsv(text).map((row) => fromRow(entity, row))
  } catch (error) {
    return put(area, h('p', { class: 'fault' }, `This file cannot be read: ${error.message}`))
  }
  const bar = progress('Writing…')
  put(area, bar.node)
  for (let done = 0; done < rows.length; done += BATCH) {
    const some = rows.slice(done, done + BATCH)
    try {
      await post(`/api/v${model.version}/operations`, { 'atomic:operations': some.map((row) => ({ op: 'add', data: toData(entity, row) })) })
    } catch (error) {
      return put(area, h('p', { class: 'fault' }, `${count(done, 'row')} imported. Then:`),
        h('ul', null, (error.faults ?? []).map((fault) => h('li', null, where(fault, done), fault.detail))), !error.faults && error.message)
    }
    bar.step((done + some.length) / rows.length, `${done + some.length} of ${rows.length}`)
  }
  notify(`${count(rows.length, 'row')} imported.`)
  close()
  window.dispatchEvent(new HashChangeEvent('hashchange'))
}

/** Row 3, name: of /atomic:operations/2/data/attributes/name */
function where(fault, done) {
  const [, number, name] = /^\/atomic:operations\/(\d+)(?:\/data\/\w+\/(\w+))?/.exec(fault.source?.pointer ?? '') ?? []
  return number === undefined ? '' : `Row ${done + Number(number) + 1}${name ? `, ${name}` : ''}: `
}

const toData = (entity, { attributes, relationships }) => ({
  type: entity.type,
  attributes: only(attributes ?? {}, entity.attributes),
  ...(relationships && Object.keys(relationships).length > 0 ? { relationships: only(relationships, entity.relationships) } : {})
})

/** What a new one may have; no values are as if not there. */
const only = (values, fields) => Object.fromEntries(Object.entries(values).filter(([name, value]) =>
  fields.find((field) => field.name === name)?.create !== undefined && value !== null && value?.data !== null &&
  fields.find((field) => field.name === name).create !== false))

function fromRow(entity, row) {
  const attributes = {}
  const relationships = {}
  for (const [name, text] of Object.entries(row)) {
    const attribute = entity.attributes.find((one) => one.name === name)
    const relationship = entity.relationships.find((one) => one.name === name && !one.many && one.types.length === 1)
    if (text === '' || name === 'id') continue
    if (relationship) relationships[name] = { data: { type: relationship.types[0], id: text } }
    else attributes[name] = attribute ? typed(attribute.kind, text) : text
  }
  return { attributes, relationships }
}

function typed(kind, text) {
  if (kind === 'boolean') return text === 'true' || text === 'yes'
  if (kind === 'integer' || kind === 'number') return /^-?\d/.test(text) ? new Exact(text) : text
  return kind === 'json' || kind === 'list' ? JSON.parse(text) : text.replace(/^'(?=[=+\-@\t\r])/, '')
}
