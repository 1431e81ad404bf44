// A form of fields, with faults at their places.
//
// A field is { name, title, schema, required } or has an "input" of its own,
// such as a choice of a resource, with the same functions.

import { h, newId, put } from './element.js'
import { hint, input } from './inputs.js'
import { busy, button, explain } from './ui.js'

const star = () => h('span', { class: 'needed', 'aria-hidden': 'true' }, ' *')

function line(field, value) {
  const id = newId()
  const below = field.hint ?? (field.schema ? hint(field.schema) : '')
  const described = [below && `${id}-hint`, `${id}-fault`].filter(Boolean).join(' ')
  const props = {
    id, name: field.name, required: field.required, 'aria-describedby': described,
    autocomplete: field.autocomplete ?? 'off'
  }
  const made = field.input ? field.input(props, value) : input(field.schema, value, props)
  const fault = h('p', { class: 'fault', id: `${id}-fault` })
  const target = made.focus ?? made.node
  return {
    field,
    made,
    node: h('div', { class: 'field' },
      h('label', { for: id, title: field.name }, field.title, field.required && star()),
      made.node,
      below && h('p', { class: 'hint', id: `${id}-hint` }, below),
      fault),
    blame(text) {
      fault.textContent = text
      if (text === '') target.removeAttribute('aria-invalid')
      else target.setAttribute('aria-invalid', 'true')
    },
    isBlamed: () => fault.textContent !== '',
    focus: () => target.focus()
  }
}

/** The line that a fault is about: its pointer leads there or below, or above what is missing. */
function lineOf(lines, { code, detail, source }) {
  const pointer = (source?.pointer ?? '').replace(/^\/data(\/(attributes|relationships)(?=\/)|(?=\/id$))/, '')
  const parts = pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const missing = code === 'REQUIRED' && /"([^"]+)"/.exec(detail)?.[1]
  const names = [parts[0], parts.slice(0, 2).join('.'), missing]
  return lines.find(({ field }) => names.includes(field.name))
}

/** What is put in by now, as far as it can be read. */
function peek(lines) {
  const said = {}
  for (const { field, made } of lines) {
    try {
      const value = made.get()
      if (value !== undefined) said[field.name] = value
    } catch { /* not whole yet */ }
  }
  return said
}

/** By the forms that are asked for it: whether what was put in would be lost with them. */
const unsaved = new WeakMap()

/** Whether a page has something that was put in and neither saved nor given up. */
export const isUnsaved = (page) => [...page.querySelectorAll('form')].some((node) => unsaved.get(node)?.())

/**
 * "save" gets { name: value } of what was put in (all: also what was not
 * changed), and throws an ApiError where the service refuses it.  Who leaves
 * the page with something put in is asked first where the form "asks".
 */
export function form({ fields, values = {}, submit = 'Save', save, cancel, all, columns, asks }) {
  const lines = fields.map((field) => line(field, values[field.name]))
  const summary = h('div', { class: 'summary', role: 'alert' })
  const send = h('button', { type: 'submit', class: 'primary' }, submit)

  const read = () => {
    const said = {}
    let fine = true
    for (const one of lines) {
      one.blame('')
      try {
        if (all || one.made.isChanged()) {
          const value = one.made.get()
          if (value !== undefined) said[one.field.name] = value
        }
      } catch (error) {
        one.blame(error.message)
        fine = false
      }
    }
    return fine ? said : null
  }

  const blame = (error) => {
    const rest = []
    const faults = error.faults?.length > 0 ? error.faults : [{ detail: explain(error) }]
    for (const fault of faults) {
      const found = lineOf(lines, fault)
      if (found) found.blame(fault.detail ?? fault.title)
      else rest.push(fault.detail ?? fault.title)
    }
    if (error.status === 429 || error.status === 503) rest.splice(0, 9, explain(error))
    put(summary, rest.map((text) => h('p', null, text)))
    lines.find((one) => one.isBlamed())?.focus()
  }

  let isTouched = false
  const giveUp = () => {
    isTouched = false
    return cancel()
  }

  const node = h('form', {
    class: columns ? 'columns' : 'stack',
    novalidate: true,
    oninput: () => { isTouched = true },
    onsubmit: async (event) => {
      event.preventDefault()
      put(summary)
      const said = read()
      if (said === null) return lines.find((one) => one.isBlamed())?.focus()
      isTouched = false
      await busy(send, () => save(said)).catch((error) => {
        isTouched = true
        if (error.name !== 'AbortError') blame(error)
      })
    }
  },
  summary, lines.map((one) => one.node),
  h('div', { class: 'row end' }, cancel && button('Cancel', giveUp), send))
  if (asks) unsaved.set(node, () => isTouched && lines.some(({ made }) => made.isChanged()))
  return { node, focus: () => lines[0]?.focus(), peek: () => peek(lines) }
}
