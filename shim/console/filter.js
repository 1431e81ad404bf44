// The builder of filters, which writes RSQL and shows it.

import { h, newId, put } from './element.js'
import { model } from './model.js'
import { shownAttributes, shownRelationships } from './read.js'
import { operatorsFor, read, write } from './rsql.js'
import { button } from './ui.js'

/** What can be asked of an entity: its attributes, those of linked ones, links. */
function selectors(entity) {
  const own = shownAttributes(entity).filter(({ kind }) => kind !== 'list' && kind !== 'password')
    .map(({ name, title, kind, schema }) => ({ name, title, kind, schema }))
  const linked = shownRelationships(entity).flatMap((relationship) => {
    const target = relationship.types.length === 1 && model.byType.get(relationship.types[0])
    const of = target ? shownAttributes(target).filter(({ kind }) => !['list', 'json', 'password'].includes(kind)) : []
    return [
      ...(relationship.many ? [] : [{ name: relationship.name, title: relationship.title, kind: 'relationship', schema: {} }]),
      ...of.map(({ name, title, kind, schema }) =>
        ({ name: `${relationship.name}.${name}`, title: `${relationship.title}: ${title.toLowerCase()}`, kind, schema }))
    ]
  })
  return [...own, ...linked, { name: 'id', title: 'Id', kind: 'uuid', schema: {} }]
}

function valueInput(selector, condition, changed) {
  const props = { 'aria-label': `Value of ${selector.title}`, onchange: (event) => { condition.value = event.target.value; changed() } }
  const fixed = (choices) => {
    if (!choices.includes(condition.value)) condition.value = choices[0]
    return h('select', props, choices.map((one) => h('option', { value: one, selected: one === condition.value }, one)))
  }
  if (condition.operator === '=isnull=' || selector.kind === 'boolean') return fixed(['true', 'false'])
  if (selector.kind === 'enum' && ['==', '!='].includes(condition.operator)) return fixed(selector.schema.enum.filter((one) => one !== null).map(String))
  const list = condition.operator === '=in=' || condition.operator === '=out='
  const type = selector.kind === 'date' && !list ? 'date' : 'text'
  const placeholder = list ? 'a,b,c' : selector.kind === 'date-time' ? '2026-01-31T12:00:00Z' : undefined
  return h('input', { ...props, type, placeholder, value: condition.value })
}

/** The builder; "apply" gets the text of the filter. */
export function filterBuilder(entity, text, apply) {
  const known = selectors(entity)
  const parsed = read(text ?? '')
  const state = parsed ?? { conditions: [], join: ';' }
  const rows = h('div', { class: 'stack' })
  const id = newId()
  const area = h('textarea', { id, rows: 1, class: 'mono', spellcheck: 'false', value: text ?? '', placeholder: "status==SENT;customer.city=ilike='%berlin%'" })
  const joins = h('select', { 'aria-label': 'Conditions are joined by', onchange: (event) => { state.join = event.target.value; changed() } },
    h('option', { value: ';', selected: state.join === ';' }, 'All of these hold'),
    h('option', { value: ',', selected: state.join === ',' }, 'Any of these holds'))

  const changed = () => { area.value = write(state.conditions, state.join) }

  function row(condition) {
    const selector = known.find(({ name }) => name === condition.selector) ?? { name: condition.selector, title: condition.selector, kind: 'string', schema: {} }
    const operators = operatorsFor(selector.kind)
    if (!operators.some(([operator]) => operator === condition.operator)) condition.operator = operators[0][0]
    const place = h('span', { class: 'grow' })
    const value = () => put(place, valueInput(selector, condition, changed))
    value()
    const node = h('div', { class: 'row condition' },
      h('select', {
        'aria-label': 'Field',
        onchange: (event) => { Object.assign(condition, { selector: event.target.value, value: '' }); node.replaceWith(row(condition)); changed() }
      }, (known.includes(selector) ? known : [selector, ...known]).map(({ name, title }) => h('option', { value: name, selected: name === selector.name }, title))),
      h('select', { 'aria-label': 'Comparison', onchange: (event) => { condition.operator = event.target.value; value(); changed() } },
        operators.map(([operator, words]) => h('option', { value: operator, selected: operator === condition.operator }, words))),
      place,
      button('×', () => { state.conditions = state.conditions.filter((one) => one !== condition); node.remove(); changed() },
        { class: 'quiet', 'aria-label': 'Remove this condition' }))
    return node
  }

  function add() {
    const condition = { selector: known[0].name, operator: '', value: '' }
    state.conditions.push(condition)
    const node = row(condition)
    rows.append(node)
    node.querySelector('select').focus()
  }

  put(rows, state.conditions.map(row))
  return h('form', {
    class: 'panel stack', 'aria-label': 'Filter',
    onsubmit: (event) => { event.preventDefault(); apply(area.value.trim()) }
  },
  parsed === null && h('p', { class: 'muted' }, 'This filter says more than the rows below can show: change its text.'),
  h('div', { class: 'row' }, joins, button('Add a condition', add)),
  rows,
  h('div', { class: 'field' }, h('label', { for: id }, 'As text (RSQL)'), area),
  h('div', { class: 'row end' }, button('Clear', () => apply('')), h('button', { type: 'submit', class: 'primary' }, 'Apply')))
}
