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
        show(await find(wanted(), box.value.trim(), under.signal), 'Nothing is called so.')
      } catch (error) {
        if (error.name !== 'AbortError') show([], explain(error))
      }
    }, pause)
  }

  /** What is found by now; what was marked is marked again if it is among it. */
  function show(now, otherwise) {
    if (document.activeElement !== box) return
    const before = found[marked]?.id
    const said = h('li', { class: 'muted', role: 'option', 'aria-disabled': 'true' }, otherwise)
    found = now
    marked = -1
    put(options, found.length > 0 ? found.map(option) : said)
    options.hidden = false
    box.setAttribute('aria-expanded', 'true')
    box.removeAttribute('aria-activedescendant')
    if (before) mark(found.findIndex(({ id }) => id === before))
  }

  const option = (one, i) => h('li', {
    role: 'option', id: `${list}-${i}`, 'aria-selected': 'false',
    onmousedown: (event) => { event.preventDefault(); take(one) }
  }, labelOf(one) ?? one.id)

  function mark(i) {
    if (i < 0) return
    marked = i
    Array.from(options.children).forEach((node, n) => node.setAttribute('aria-selected', String(n === marked)))
    box.setAttribute('aria-activedescendant', `${list}-${marked}`)
    options.children[marked].scrollIntoView({ block: 'nearest' })
  }

  /**
   * While the list is open its keys are its own: Enter does not send the form,
   * nor does it while what was typed has not been answered.
   */
  function key(event) {
    const isDown = event.key === 'ArrowDown'
    if (!isDown && !['ArrowUp', 'Enter', 'Escape'].includes(event.key)) return
    if (options.hidden) {
      if (isDown) ask(0)
      if (event.key === 'Enter' && box.value.trim() !== '') event.preventDefault()
      return
    }
    event.preventDefault()
    if (event.key === 'Escape') {
      event.stopPropagation()
      close()
    } else if (event.key === 'Enter') {
      const one = found[marked] ?? (found.length === 1 ? found[0] : undefined)
      if (one) take(one)
    } else if (found.length > 0) {
      mark((Math.max(marked, isDown ? -1 : 0) + (isDown ? 1 : -1) + found.length) % found.length)
    }
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
