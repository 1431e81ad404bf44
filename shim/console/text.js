// Values as text, and back.

/** A number whose text says more than JavaScript's: 89.90, or 17 digits. */
export class Exact {
  constructor(text) { this.text = text }
  toString() { return this.text }
  toJSON() { return JSON.rawJSON ? JSON.rawJSON(this.text) : Number(this.text) }
}

export const parse = (text) => JSON.parse(text, (key, value, context) =>
  typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
    ? new Exact(context.source) : value)

export const pretty = (value) => JSON.stringify(value, null, 2)

/** creditLimit is "Credit limit" to who reads; URLs and ids keep their letters. */
export function words(name) {
  const split = String(name).replace(/([a-z\d])([A-Z])/g, '$1 $2').replace(/[_-]+/g, ' ')
  const plain = split.split(' ').map((word) => /^[A-Z]{2,}$/.test(word) ? word : word.toLowerCase()).join(' ')
  return plain.charAt(0).toUpperCase() + plain.slice(1)
}

const stamps = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const days = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })

export function dateTime(text) {
  const at = new Date(text)
  return isNaN(at) ? String(text) : stamps.format(at)
}

export function date(text) {
  const at = new Date(`${text}T00:00:00Z`)
  return isNaN(at) ? String(text) : days.format(at)
}

/** With the separators of the reader, and the decimals that came. */
export function number(value) {
  const text = String(value)
  const decimals = /^-?\d+(?:\.(\d+))?$/.exec(text)
  if (!decimals) return text
  const digits = (decimals[1] ?? '').length
  if (digits > 20) return text
  return new Intl.NumberFormat(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(text)
}

export const count = (n, one, many = `${one}s`) => `${number(n)} ${Number(n) === 1 ? one : many}`

const two = (n) => String(n).padStart(2, '0')

/** A time as an input of type datetime-local has it, and back. */
export function toLocal(text) {
  const at = new Date(text)
  if (isNaN(at)) return ''
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}` +
    `T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

export const fromLocal = (text) => new Date(text).toISOString().replace('.000Z', 'Z')

/** The end of a long id: how it begins tells when it was made, and is much the same for all of a day. */
export const shortId = (id) => String(id).length > 16 ? `…${String(id).slice(-8)}` : String(id)

/** Text as it stands in quotes of a filter. */
export function quote(value) {
  const text = String(value)
  return /^[\w.:-]+$/.test(text) && !/^(and|or)$/i.test(text) ? text : `'${text.replace(/[\\']/g, '\\$&')}'`
}

/** A pattern of LIKE that finds this text anywhere. */
export const anywhere = (text) => quote(`%${String(text).replace(/[\\%_]/g, '\\$&')}%`)
