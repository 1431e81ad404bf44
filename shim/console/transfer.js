// Many resources at once: out into a file page by page, and in by operations,
// some hundred of which are done together or not at all.

import { get, post } from './api.js'
import { line, plain, readCsv } from './csv.js'
import { h, put } from './element.js'
import { has, isWritable, may, model } from './model.js'
import { fieldsFor, shownFields } from './read.js'
import { Exact, count, parse } from './text.js'
import { action, button, dialog, notify, progress, save } from './ui.js'

const PAGE = 100
const BATCH = 100
const NUMBER = /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/
const TRUTH = new Map([['true', true], ['yes', true], ['false', false], ['no', false]])

export function exportButton(entity, query) {
  return button('Export', () => dialog(`Export ${entity.title.toLowerCase()}`, (close) => {
    const area = h('div')
    let stopped = false
    const run = async (form) => {
      const bar = progress('Reading…')
      put(area, bar.node)
      const rows = await readAll(entity, query, bar, () => stopped || !area.isConnected)
      if (stopped || !area.isConnected) return
      form === 'csv' ? saveCsv(entity, rows) : saveJson(entity, rows)
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
  const columns = shownFields(entity).map(({ name }) => name)
  const own = `fields[${entity.type}]`
  const fields = { [own]: fieldsFor(entity, columns)[own] }
  const rows = []
  let after = 'start'
  let total
  while (after && !isStopped()) {
    const { data, meta } = await get(entity.base, {
      filter: query.filter, sort: query.sort, 'show[deleted]': query.deleted,
      'page[size]': PAGE, 'page[after]': after, 'page[totals]': total === undefined, ...fields
    })
    rows.push(...data.map(({ type, id, attributes, relationships }) =>
      ({ type, id, attributes, relationships: linked(relationships) })))
    total ??= meta.pagination.totalRecords
    after = meta.pagination.after
    bar.step(total > 0 ? rows.length / total : 1, `${rows.length} of ${total}`)
  }
  return rows
}

const linked = (relationships) => relationships &&
  Object.fromEntries(Object.entries(relationships).map(([name, { data }]) => [name, { data }]))

/** An id; where it may be of several types, with its type. */
const target = ({ types }, data) => data && (types.length > 1 ? `${data.type}/${data.id}` : data.id)

const saveJson = (entity, rows) =>
  save(`${entity.collection}.json`, 'application/json', [JSON.stringify(rows, null, 1)])

/** All rows as CSV, columns in the order of the manifest. */
export function csvOf(entity, rows) {
  const fields = shownFields(entity)
  const names = ['id', ...fields.map(({ name }) => name)]
  const valueOf = ({ attributes, relationships }, one) =>
    one.types ? target(one, relationships?.[one.name]?.data) : attributes?.[one.name]
  const lines = rows.map((row) => [row.id, ...fields.map((one) => valueOf(row, one))])
  return [names, ...lines].map(line).join('')
}

const saveCsv = (entity, rows) => save(`${entity.collection}.csv`, 'text/csv', [csvOf(entity, rows)])

export function importButton(entity) {
  if (!may(entity, 'create') || !has(`/api/v${model.version}/operations`, 'post')) return null
  return button('Import', () => {
    let imported = 0
    return dialog(`Import ${entity.title.toLowerCase()}`, (close) => {
      const area = h('div', { class: 'stack', role: 'alert' })
      const file = h('input', {
        type: 'file', accept: '.json,.csv,application/json,text/csv', 'aria-label': 'File',
        onchange: () => look(entity, file.files[0], area)
      })
      return [
        h('p', null, 'A file of CSV whose first line has names of fields, or what "Export" saved as JSON. ' +
          `Each row becomes a new ${entity.single.toLowerCase()}; ids of the file are not used.`),
        h('p', { class: 'hint' }, `${BATCH} rows are done together, or none of them.`),
        file, area,
        h('div', { class: 'row end' }, button('Close', () => close()), action('Import', async () => {
          const read = await look(entity, file.files[0], area)
          if (read) await write(entity, read.rows, area, close, (n) => { imported = n })
        }, { class: 'primary' }))
      ]
    }).then(() => { if (imported > 0) window.dispatchEvent(new HashChangeEvent('hashchange')) })
  })
}

/** What is in a file, told before anything is written; null for what cannot be read. */
async function look(entity, file, area) {
  const fault = (text) => { put(area, h('p', { class: 'fault' }, text)); return null }
  if (!file) return fault('Choose a file.')
  try {
    const found = readRows(entity, await file.text())
    const used = found.names.filter((name) => isSet(entity, name))
    const left = found.names.filter((name) => !used.includes(name) && name !== 'id')
    if (found.rows.length === 0) return fault('There are no rows in this file.')
    if (used.length === 0) return fault(`None of its names is that of a field that can be set: ${left.join(', ')}.`)
    put(area,
      h('p', null, `${count(found.rows.length, 'row')} with ${used.join(', ')}.`),
      left.length > 0 && h('p', { class: 'banner' }, `Left out, as they cannot be set: ${left.join(', ')}.`))
    return found
  } catch (error) {
    return fault(`This file cannot be read: ${error.message}`)
  }
}

/** { names, rows } of the text of a file; rows are { attributes, relationships }. */
function readRows(entity, text) {
  if (!/^\s*[[{]/.test(text)) {
    const { names, rows } = readCsv(text)
    return { names, rows: rows.map((row, i) => fromRow(entity, row, i)) }
  }
  const rows = [parse(text)].flat()
  const namesOf = ({ attributes, relationships }) => Object.keys({ ...attributes, ...relationships })
  return { names: [...new Set(rows.flatMap(namesOf))], rows }
}

async function write(entity, rows, area, close, tell) {
  const bar = progress('Writing…')
  put(area, bar.node)
  for (let done = 0; done < rows.length && area.isConnected; done += BATCH) {
    const some = rows.slice(done, done + BATCH)
    const operations = some.map((row) => ({ op: 'add', data: toData(entity, row) }))
    try {
      await post(`/api/v${model.version}/operations`, { 'atomic:operations': operations })
    } catch (error) {
      const faults = (error.faults ?? []).map((fault) => h('li', null, where(fault, done), fault.detail))
      return put(area, h('p', { class: 'fault' }, `${count(done, 'row')} imported. Then:`), h('ul', null, faults),
        faults.length === 0 && h('p', null, error.message))
    }
    tell(done + some.length)
    bar.step((done + some.length) / rows.length, `${done + some.length} of ${rows.length}`)
  }
  if (!area.isConnected) return notify('Stopped. What was imported by then stays.')
  notify(`${count(rows.length, 'row')} imported.`)
  close()
}

/** Row 3, name: of /atomic:operations/2/data/attributes/name */
function where(fault, done) {
  const [, number, name] = /^\/atomic:operations\/(\d+)(?:\/data\/\w+\/(\w+))?/.exec(fault.source?.pointer ?? '') ?? []
  return number === undefined ? '' : `Row ${done + Number(number) + 1}${name ? `, ${name}` : ''}: `
}

const fieldOf = (entity, name) => [...entity.attributes, ...entity.relationships].find((one) => one.name === name)

/** What a new one may have. */
const isSet = (entity, name) => Boolean(fieldOf(entity, name)?.create) && isWritable(entity.type, name)

function toData(entity, { attributes, relationships }) {
  const links = only(entity, relationships)
  return {
    type: entity.type,
    attributes: only(entity, attributes),
    ...(Object.keys(links).length > 0 ? { relationships: links } : {})
  }
}

/** No values are as if not there. */
const only = (entity, values) => Object.fromEntries(Object.entries(values ?? {})
  .filter(([name, value]) => isSet(entity, name) && value !== null && value?.data !== null))

function fromRow(entity, row, i) {
  const attributes = {}
  const relationships = {}
  for (const [name, text] of Object.entries(row)) {
    const relationship = entity.relationships.find((one) => one.name === name && !one.many)
    if (text === '') continue
    if (relationship) relationships[name] = { data: identifier(relationship, text) }
    else attributes[name] = typed(fieldOf(entity, name)?.kind, text, `row ${i + 1}, ${name}`)
  }
  return { attributes, relationships }
}

function identifier({ types }, text) {
  const [, type = types[0], id] = /^(?:(.*)\/)?([^/]*)$/.exec(text)
  return { type, id }
}

/** What is not of its kind is sent as it is, for the service to say so. */
function typed(kind, text, place) {
  if (kind === 'boolean') return TRUTH.get(text.toLowerCase()) ?? text
  if (kind === 'integer' || kind === 'number') return NUMBER.test(text) ? new Exact(text) : text
  if (kind !== 'json' && kind !== 'list') return plain(text)
  try {
    return parse(text)
  } catch {
    throw new Error(`${place} is no JSON.`)
  }
}
