// The builder of filters, which writes RSQL and shows it.

import { h, newId, put } from './element.js'
import { inOrder, model } from './model.js'
import { picker } from './picker.js'
import { shownAttributes, shownRelationships } from './read.js'
import { operatorsFor, read, write } from './rsql.js'
import { fromLocal, toLocal } from './text.js'
import { button } from './ui.js'

const EXAMPLE = "status==SENT;customer.city=ilike='%berlin%'"

const plain = ({ kind }) => !['list', 'json', 'password'].includes(kind)

/** What can be asked of a relationship: the link, attributes behind it. */
function behind(relationship) {
  const { name, title, many, types } = relationship
  const target = types.length === 1 && model.byType.get(types[0])
  const itself = target ? { name: `${name}.id`, title, kind: 'reference', schema: {}, relationship }
    : { name, title, kind: 'relationship', schema: {} }
  const further = target ? shownAttributes(target).filter(plain) : []
  return [...(many ? [] : [itself]), ...further.map((one) => ({
    name: `${name}.${one.name}`, title: `${title}: ${one.title.toLowerCase()}`, kind: one.kind, schema: one.schema
  }))]
}

/** What can be asked of an entity: its attributes, those of linked ones, links. */
function selectors(entity) {
  const own = shownAttributes(entity).filter(({ kind }) => kind !== 'list' && kind !== 'password')
  const fields = inOrder(entity, [...own, ...shownRelationships(entity)])
  return [
    ...fields.flatMap((one) => one.types ? behind(one)
      : { name: one.name, title: one.title, kind: one.kind, schema: one.schema }),
    { name: 'id', title: 'Id', kind: entity.id.kind, schema: {} }
  ]
}

const options = (pairs, chosen) => pairs.map(([of, text]) => h('option', { value: of, selected: of === chosen }, text))

function fixed(choices, condition, props) {
  if (!choices.includes(condition.value)) condition.value = choices[0]
  return h('select', props, options(choices.map((one) => [one, one]), condition.value))
}

/** A resource that is found by its name, and asked for by its id. */
function reference(selector, condition, label, changed) {
  const { relationship } = selector
  const begun = condition.value ? { type: relationship.types[0], id: condition.value } : null
  const found = picker({ ...relationship, many: false, required: false }, { 'aria-label': label }, begun, (one) => {
    condition.value = one?.id ?? ''
    changed()
  })
  return found.node
}

function valueInput(selector, condition, changed) {
  const label = `Value of ${selector.title}`
  const { operator } = condition
  const isList = operator === '=in=' || operator === '=out='
  const isTime = selector.kind === 'date-time' && !isList
  const props = {
    'aria-label': label,
    onchange: ({ target: { value } }) => {
      condition.value = isTime && value ? fromLocal(value) : value
      changed()
    }
  }
  if (operator === '=isnull=' || selector.kind === 'boolean') return fixed(['true', 'false'], condition, props)
  if (selector.kind === 'reference') return reference(selector, condition, label, changed)
  if (selector.kind === 'enum' && !isList) {
    return fixed(selector.schema.enum.filter((one) => one !== null).map(String), condition, props)
  }
  if (isTime) {
    const value = toLocal(condition.value)
    return h('input', { ...props, type: 'datetime-local', step: 1, title: 'In your local time', value })
  }
  const type = selector.kind === 'date' && !isList ? 'date' : 'text'
  return h('input', { ...props, type, placeholder: isList ? 'a,b,c' : undefined, value: condition.value })
}

/** The builder: { node, focus }; "apply" gets the text of the filter. */
export function filterBuilder(entity, text, apply) {
  const known = selectors(entity)
  const parsed = read(text ?? '')
  const state = parsed ?? { conditions: [], join: ';' }
  const rows = h('div', { class: 'stack' })
  const id = newId()
  const area = h('textarea', {
    id, rows: 2, class: 'mono', spellcheck: 'false', value: text ?? '', placeholder: EXAMPLE
  })
  const joins = h('select', {
    'aria-label': 'Conditions are joined by',
    onchange: ({ target }) => { state.join = target.value; changed() }
  },
  options([[';', 'All of these hold'], [',', 'Any of these holds']], state.join))

  const changed = () => { area.value = write(state.conditions, state.join) }

  const find = (name) => known.find((one) => one.name === name) ?? { name, title: name, kind: 'string', schema: {} }

  function row(condition) {
    const selector = find(condition.selector)
    const operators = operatorsFor(selector.kind)
    if (!operators.some(([operator]) => operator === condition.operator)) condition.operator = operators[0][0]
    const place = h('span', { class: 'grow' })
    const fill = () => put(place, valueInput(selector, condition, changed))
    const replace = (change) => {
      const other = row(Object.assign(condition, change))
      node.replaceWith(other)
      other.querySelector('select').focus()
      changed()
    }
    const compare = (operator) => {
      condition.operator = operator
      fill()
      changed()
    }
    const remove = () => {
      state.conditions = state.conditions.filter((one) => one !== condition)
      node.remove()
      changed()
      more.focus()
    }
    fill()
    const node = h('div', { class: 'row condition' },
      h('select', { 'aria-label': 'Field', onchange: ({ target }) => replace({ selector: target.value, value: '' }) },
        options([...new Set([selector, ...known])].map(({ name, title }) => [name, title]), selector.name)),
      h('select', { 'aria-label': 'Comparison', onchange: ({ target }) => compare(target.value) },
        options(operators, condition.operator)),
      place,
      button('×', remove, { class: 'quiet', 'aria-label': 'Remove this condition' }))
    return node
  }

  function add() {
    const condition = { selector: known[0].name, operator: '', value: '' }
    state.conditions.push(condition)
    const node = row(condition)
    rows.append(node)
    return node.querySelector('select')
  }

  const more = button('Add a condition', () => add().focus())
  put(rows, state.conditions.map(row))
  if (!text) add()
  const node = h('form', {
    class: 'panel stack', 'aria-label': 'Filter',
    onsubmit: (event) => { event.preventDefault(); apply(area.value.trim()) }
  },
  parsed === null && h('p', { class: 'muted' }, 'This filter says more than the rows below can show: change its text.'),
  rows,
  h('div', { class: 'row' }, more, joins),
  h('div', { class: 'field' }, h('label', { for: id }, 'As text (RSQL)'), area),
  h('div', { class: 'row end' },
    button('Clear', () => apply('')),
    h('button', { type: 'submit', class: 'primary' }, 'Apply')))
  return { node, focus: () => (rows.querySelector('select') ?? area).focus() }
}
