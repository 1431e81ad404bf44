// A choice of resources, found by their names: one, or several.

import { get } from './api.js'
import { h, newId, put } from './element.js'
import { labelOf, model, permits } from './model.js'
import { fieldsFor, nameOf, remember } from './read.js'
import { anywhere, shortId } from './text.js'
import { button, explain } from './ui.js'

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const PAUSE = 180

export const nameIt = (one) => nameOf(one) ?? shortId(one.id)

async function find(type, text, signal) {
  const entity = model.byType.get(type)
  const label = entity.label?.name
  const named = label && `${label}=ilike=${anywhere(text)}`
  const filter = text === '' ? undefined : ID.test(text) ? `id==${text}` : named
  const fields = fieldsFor(entity, label ? [label] : [])
  const query = { filter, sort: label, 'page[size]': 8, 'page[totals]': false, ...fields }
  const found = await get(entity.base, query, { signal })
  found.data.forEach(remember)
  return found.data
}

/** An input in which one types a part of a name, and chooses of what is found. */
function search(types, props, choose) {
  const list = newId()
  const options = h('ul', { role: 'listbox', id: list, class: 'options', hidden: true, 'aria-label': 'Found' })
  const wanted = () => kinds ? kinds.value : types[0]
  const placeholder = () => `Search ${model.byType.get(wanted())?.title.toLowerCase() ?? ''}…`
  const turn = () => { box.placeholder = placeholder() }
  const kinds = types.length > 1 && h('select', { 'aria-label': 'Kind', onchange: turn },
    types.map((type) => h('option', { value: type }, model.byType.get(type).single)))
  let found = []
  let marked = -1
  let waiting = null
  let under = null

  const box = h('input', {
    ...props, type: 'text', role: 'combobox', autocomplete: 'off', placeholder: placeholder(),
    'aria-expanded': 'false', 'aria-controls': list, 'aria-autocomplete': 'list',
    oninput: () => ask(PAUSE),
    onfocus: () => ask(0),
    onblur: () => setTimeout(close, 150),
    onkeydown: key
  })

  function close() {
    options.hidden = true
    box.setAttribute('aria-expanded', 'false')
    box.removeAttribute('aria-activedescendant')
    under?.abort()
    clearTimeout(waiting)
  }

  function ask(pause) {
    clearTimeout(waiting)
    waiting = setTimeout(async () => {
      under?.abort()
      under = new AbortController()
      try {
        found = await find(wanted(), box.value.trim(), under.signal)
        show(found.length > 0 ? null : 'Nothing is called so.')
      } catch (error) {
        found = []
        if (error.name !== 'AbortError') show(explain(error))
      }
    }, pause)
  }

  function show(text) {
    if (document.activeElement !== box) return
    marked = -1
    const said = h('li', { class: 'muted', role: 'option', 'aria-disabled': 'true' }, text)
    put(options, text === null ? found.map(option) : said)
    options.hidden = false
    box.setAttribute('aria-expanded', 'true')
  }

  const option = (one, i) => h('li', {
    role: 'option', id: `${list}-${i}`, 'aria-selected': 'false',
    onmousedown: (event) => { event.preventDefault(); take(one) }
  }, labelOf(one) ?? one.id)

  function mark(i) {
    marked = (i + found.length) % found.length
    Array.from(options.children).forEach((option, n) => option.setAttribute('aria-selected', String(n === marked)))
    box.setAttribute('aria-activedescendant', `${list}-${marked}`)
    options.children[marked].scrollIntoView({ block: 'nearest' })
  }

  function key(event) {
    if (event.key === 'Escape' && !options.hidden) { event.preventDefault(); event.stopPropagation(); close() }
    if (options.hidden || found.length === 0) return
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      mark(marked + (event.key === 'ArrowDown' ? 1 : marked < 0 ? 0 : -1))
    }
    if (event.key === 'Enter' && marked >= 0) { event.preventDefault(); take(found[marked]) }
  }

  function take(one) {
    close()
    box.value = ''
    choose({ type: one.type, id: one.id })
  }

  return { node: h('div', { class: 'picker' }, h('div', { class: 'row tight' }, kinds, box), options), box }
}

const mayRead = (type) => model.byType.has(type) && permits({ type }, 'read')

/**
 * An input of a form for linked resources; value is an identifier, a list or
 * null.  "changed" is told what is chosen then.
 */
export function picker(relationship, props, value, changed) {
  const known = relationship.types.filter(mayRead)
  const begun = relationship.many ? [...(value ?? [])] : value ? [value] : []
  let chosen = [...begun]
  const area = h('div', { class: 'chosen' })
  const finder = search(known, props, (one) => {
    chosen = relationship.many ? [...chosen.filter(({ id }) => id !== one.id), one] : [one]
    show()
    tell()
  })

  const tell = () => changed?.(relationship.many ? chosen : chosen[0] ?? null)

  function show() {
    put(area, chosen.map((one) => h('span', { class: 'chip' }, nameIt(one),
      (relationship.many || !relationship.required) && button('×', () => {
        chosen = chosen.filter((other) => other !== one)
        show()
        tell()
        finder.box.focus()
      }, { class: 'quiet', 'aria-label': `Remove ${nameIt(one)}` }))))
  }

  show()
  const text = (list) => list.map(({ type, id }) => `${type} ${id}`).join()
  return {
    node: h('div', null, area, finder.node),
    focus: finder.box,
    isChanged: () => text(chosen) !== text(begun),
    get: () => relationship.many ? chosen : chosen[0] ?? (begun.length > 0 ? null : undefined)
  }
}
