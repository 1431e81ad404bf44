// CSV (RFC 4180): how a value is written, and a text is read.

import { Exact } from './text.js'

/**
 * A cell; what a spreadsheet would run is made text. All text is quoted, as some split lines at other characters, too.
 */
export function cell(value) {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'boolean' || value instanceof Exact) return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return `"${safe.replaceAll('"', '""')}"`
}

export const line = (values) => `${values.map(cell).join(',')}\r\n`

/** What cell() made text of is as it was. */
export const plain = (text) => text.replace(/^'(?=[=+\-@\t\r])/, '')

const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y

/** The cells of all lines; a fault tells its line. */
function readLines(text) {
  const lines = [[]]
  CELL.lastIndex = 0
  while (CELL.lastIndex < text.length) {
    const [, quoted, bare, end] = CELL.exec(text) ?? []
    if (end === undefined) throw new Error(`line ${lines.length} has a quotation mark that is not closed.`)
    lines.at(-1).push(quoted === undefined ? bare : quoted.replaceAll('""', '"'))
    if (end === ',') {
      if (CELL.lastIndex === text.length) lines.at(-1).push('')
    } else lines.push([])
  }
  return lines
}

/** { names, rows } of a text whose first line has names; rows are objects by them. */
export function readCsv(text) {
  const isSaid = (cells) => cells.some((one) => one !== '')
  const [first = [], ...lines] = readLines(text.replace(/^\uFEFF/, '')).filter(isSaid)
  const names = first.map((name) => name.trim())
  const wide = lines.findIndex((cells) => cells.length > names.length)
  if (wide >= 0) throw new Error(`row ${wide + 1} has more values than there are names.`)
  return { names, rows: lines.map((cells) => Object.fromEntries(names.map((name, i) => [name, cells[i] ?? '']))) }
}
