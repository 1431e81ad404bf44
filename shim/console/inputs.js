// An input for a value of a schema: { node, get, isChanged }.  get() returns
// undefined for nothing put in, and null for a value taken away.

import { h } from './element.js'
import { deref, isNullable, kindOf } from './model.js'
import { Exact, fromLocal, parse, pretty, toLocal } from './text.js'

const LONG = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/

/** The text of a number as one; what is none is sent as it is, for the service to say so. */
function figure(text) {
  const plain = text.trim()
  if (!LONG.test(plain)) return plain
  return String(Number(plain)) === plain ? Number(plain) : new Exact(plain)
}

const kinds = {
  string: () => ({ type: 'text' }),
  uuid: () => ({ type: 'text', class: 'mono', spellcheck: 'false' }),
  password: () => ({ type: 'password' }),
  integer: () => ({ type: 'text', inputmode: 'numeric' }),
  number: () => ({ type: 'text', inputmode: 'decimal' }),
  date: () => ({ type: 'date' }),
  time: () => ({ type: 'time', step: 1 }),
  'date-time': () => ({ type: 'datetime-local', step: 1 })
}

const toText = {
  'date-time': (value) => toLocal(value),
  json: (value) => pretty(value),
  list: (value) => value.join('\n')
}

const fromText = {
  integer: figure,
  number: figure,
  'date-time': fromLocal,
  list: (text) => text.split(/[\n,]/).map((item) => item.trim()).filter((item) => item !== ''),
  json: (text) => {
    try { return parse(text) } catch { throw new Error('This is no JSON.') }
  }
}

const PRESET = /\s*Default: (.+)\.$/
const presetOf = (schema) => PRESET.exec(schema.description ?? '')?.[1]

const WORDS = new Map([['true', 'yes'], ['false', 'no']])
const chosenAs = (kind, one) => kind === 'boolean' ? WORDS.get(String(one)) ?? one : one

function choices(schema, props, value) {
  const kind = kindOf(schema)
  const given = kind === 'boolean' ? [true, false] : schema.enum ?? [schema.const]
  const names = given.filter((one) => one !== null)
  const needed = props.required && value !== undefined && value !== null && !isNullable(schema)
  const preset = value === undefined ? presetOf(schema) : undefined
  const nothing = schema.nothing ?? (preset === undefined ? '–' : `${chosenAs(kind, preset)} (default)`)
  return h('select', props,
    !needed && h('option', { value: '' }, nothing),
    names.map((one) => h('option', { value: String(one), selected: value === one }, chosenAs(kind, one))))
}

const isChoice = (kind) => kind === 'enum' || kind === 'boolean'

function area(kind, props, began) {
  const isText = kind === 'text'
  return h('textarea', {
    ...props, rows: isText ? 3 : 4, class: kind === 'json' ? 'mono' : undefined, value: began,
    spellcheck: isText ? undefined : 'false'
  })
}

function element(kind, schema, value, began, props) {
  return isChoice(kind) ? choices(schema, props, value)
    : ['text', 'json', 'list'].includes(kind) ? area(kind, props, began)
      : h('input', { ...kinds[kind](), ...props, value: began })
}

/** Characters as the service counts them; what is too long is told, not cut. */
function fit(text, { maxLength }) {
  const length = [...text].length
  if (length > (maxLength ?? Infinity)) throw new Error(`At most ${maxLength} characters; these are ${length}.`)
  return text
}

export function input(given, value, props = {}) {
  const schema = deref(given)
  const kind = kindOf(schema)
  const began = value === undefined || value === null ? '' : (toText[kind] ?? String)(value)
  const node = element(kind, schema, value, began, props)
  const first = node.value
  return {
    node,
    isChanged: () => node.value !== first,
    get() {
      const text = node.value
      if (node.validity.badInput) throw new Error('This is not whole.')
      if (text === '') {
        if (began === '') return undefined
        return isNullable(schema) || !['string', 'text'].includes(kind) ? null : ''
      }
      if (kind === 'boolean') return text === 'true'
      return (fromText[kind] ?? fit)(text, schema)
    }
  }
}

/** What a schema says of its values, in a line below the input. */
export function hint(schema) {
  const said = []
  const { minimum, maximum, minLength, maxLength, pattern, format, description } = schema
  // the default of a choice stands in it
  const text = isChoice(kindOf(schema)) ? description?.replace(PRESET, '') : description
  if (text) said.push(text)
  if (minimum !== undefined && maximum !== undefined) said.push(`From ${minimum} to ${maximum}.`)
  else if (minimum !== undefined) said.push(`At least ${minimum}.`)
  else if (maximum !== undefined) said.push(`At most ${maximum}.`)
  if (minLength > 1) said.push(`At least ${minLength} characters.`)
  if (maxLength !== undefined && maxLength !== 255) said.push(`At most ${maxLength} characters.`)
  if (pattern && ![schema.type].flat().includes('number')) said.push(`Pattern: ${pattern}`)
  if (format === 'date-time') said.push('In your local time.')
  if (kindOf(schema) === 'list') said.push('One on each line.')
  if (kindOf(schema) === 'json') said.push('As JSON.')
  return said.join(' ')
}
