// Filters as the builder knows them: conditions joined all by "and", or all
// by "or".  What is more than that is text, which the service reads.

import { quote } from './text.js'

const COMPARE = [['==', 'is'], ['!=', 'is not']]
const ORDER = [['=ge=', 'at least'], ['=le=', 'at most'], ['=gt=', 'more than'], ['=lt=', 'less than']]
const ANY = [['=in=', 'is one of'], ['=out=', 'is none of']]
const NULLS = [['=isnull=', 'has no value']]

/** Several parts have a comma between them, beside those in [] and {} of the pattern. */
export function kindOfIds({ pattern = '', format = 'uuid' }) {
  if (pattern.replace(/\[[^\]]*\]|\{[^}]*\}/g, '').includes(',')) return 'parts'
  return /^\^\(0\|-/.test(pattern) ? 'integer' : format
}

export function operatorsFor(kind) {
  if (kind === 'relationship' || kind === 'json') return NULLS
  if (kind === 'reference') return [...COMPARE, ...NULLS]
  if (kind === 'parts') return [...COMPARE, ...ORDER]
  if (kind === 'boolean') return [...COMPARE, ...NULLS]
  if (kind === 'enum' || kind === 'uuid') return [...COMPARE, ...ANY, ...NULLS]
  if (kind === 'string' || kind === 'text') return [['=ilike=', 'contains'], ...COMPARE, ...ANY, ...ORDER, ...NULLS]
  return [...COMPARE, ...ORDER, ...ANY, ...NULLS]
}

function literal({ operator, value }) {
  const isList = operator === '=in=' || operator === '=out='
  if (isList) return `(${value.split(',').map((one) => quote(one.trim())).join(',')})`
  if (operator === '=ilike=' && !/[%_]/.test(value)) return quote(`%${value.replace(/\\/g, '\\\\')}%`)
  return quote(value)
}

export const write = (conditions, join) => conditions.filter(({ value }) => value !== '')
  .map((one) => one.selector + one.operator + literal(one)).join(join)

const TOKEN = /^([\w.]+)(==|!=|=[a-z]+=)(\((?:[^()'"]|'(?:[^'\\]|\\.)*')*\)|'(?:[^'\\]|\\.)*'|[^;,()'"\s]+)/

const plain = (text) => text.startsWith("'") ? text.slice(1, -1).replace(/\\(.)/g, '$1') : text

/** { conditions, join } of a text that the builder could have written; else null. */
export function read(text) {
  const conditions = []
  const joins = new Set()
  let rest = text.trim()
  while (rest !== '') {
    const found = TOKEN.exec(rest)
    if (!found) return null
    const [whole, selector, operator, raw] = found
    let value = plain(raw)
    if (/'[^']*,[^']*'/.test(raw) && raw.startsWith('(')) return null
    if (raw.startsWith('(')) value = raw.slice(1, -1).split(',').map((one) => plain(one.trim())).join(',')
    if (operator === '=ilike=') {
      const inner = /^%(.*)%$/.exec(value)
      if (inner && !/[%_\\]/.test(inner[1])) value = inner[1]
      else if (!/[%_]/.test(value)) return null
    }
    conditions.push({ selector, operator, value })
    rest = rest.slice(whole.length)
    if (rest === '') break
    if (!/^[;,]./.test(rest)) return null
    joins.add(rest[0])
    rest = rest.slice(1)
  }
  return joins.size > 1 ? null : { conditions, join: [...joins][0] ?? ';' }
}
