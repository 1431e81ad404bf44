// A form of fields, with faults at their places.
//
// A field is { name, title, schema, required } or has an "input" of its own,
// such as a choice of a resource, with the same functions.

import { h, newId, put } from './element.js'
import { hint, input } from './inputs.js'
import { button, explain } from './ui.js'

function line(field, value, prefix) {
  const id = newId()
  const below = field.hint ?? (field.schema ? hint(field.schema) : '')
  const described = [below && `${id}-hint`, `${id}-fault`].filter(Boolean).join(' ')
  const props = { id, name: field.name, required: field.required, 'aria-describedby': described, autocomplete: field.autocomplete ?? 'off' }
  const made = field.input ? field.input(props, value) : input(field.schema, value, props)
  const fault = h('p', { class: 'fault', id: `${id}-fault` })
  const target = made.focus ?? made.node
  return {
    field,
    made,
    pointer: prefix,
    node: h('div', { class: 'field' },
      h('label', { for: id, title: field.name }, field.title, field.required && h('span', { class: 'needed', 'aria-hidden': 'true' }, ' *')),
      made.node, below && h('p', { class: 'hint', id: `${id}-hint` }, below), fault),
    blame(text) {
      fault.textContent = text
      if (text === '') target.removeAttribute('aria-invalid')
      else target.setAttribute('aria-invalid', 'true')
    },
    isBlamed: () => fault.textContent !== '',
    focus: () => target.focus()
  }
}

/** The line that a fault is about: its pointer ends there, or above what is missing. */
function lineOf(lines, { code, detail, source }) {
  const parts = (source?.pointer ?? '').split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const missing = code === 'REQUIRED' && /^"([^"]+)"/.exec(detail)?.[1]
  return lines.find(({ field }) => parts.includes(field.name) || field.name === missing)
}

/**
 * "save" gets { name: value } of what was put in (all: also what was not
 * changed), and throws an ApiError where the service refuses it.
 */
export function form({ fields, values = {}, submit = 'Save', save, cancel, all = false, columns = false, danger = false }) {
  const lines = fields.map((field) => line(field, values[field.name]))
  const summary = h('div', { class: 'summary', role: 'alert' })
  const send = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, submit)

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
    for (const fault of error.faults?.length > 0 ? error.faults : [{ detail: explain(error) }]) {
      const found = lineOf(lines, fault)
      if (found) found.blame(fault.detail ?? fault.title)
      else rest.push(fault.detail ?? fault.title)
    }
    if (error.status === 429 || error.status === 503) rest.splice(0, 9, explain(error))
    put(summary, rest.map((text) => h('p', null, text)))
    lines.find((one) => one.isBlamed())?.focus()
  }

  const node = h('form', {
    class: columns ? 'columns' : 'stack',
    novalidate: true,
    onsubmit: async (event) => {
      event.preventDefault()
      put(summary)
      const said = read()
      if (said === null || send.disabled) return
      send.disabled = true
      try {
        await save(said)
      } catch (error) {
        if (error.name !== 'AbortError') blame(error)
      } finally {
        send.disabled = false
      }
    }
  }, summary, lines.map((one) => one.node), h('div', { class: 'row end' }, cancel && button('Cancel', cancel), send))
  return { node, focus: () => lines[0]?.focus(), isChanged: () => lines.some((one) => one.made.isChanged()) }
}
