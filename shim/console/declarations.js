// Entities and their relationships as a picture, and as a list for who cannot
// see it.

import { h, svg } from './element.js'
import { SYSTEM, inOrder, model } from './model.js'
import { link } from './route.js'
import { empty, head } from './ui.js'

const WIDE = 190
const LINE = 19
const TITLE = 30
const GAP = { x: 72, y: 34 }
const MOST = 12
const LARGE = 1300

const linesOf = (entity) =>
  inOrder(entity, [...entity.attributes, ...entity.relationships.filter(({ many }) => !many)])
    .map(({ name, kind = '→', required }) => ({ name, kind, required }))

const short = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text

/** Who wrote something leads to users from everywhere: that is left out. */
const arrowsOf = (entity) => entity.relationships.filter(({ name, many }) => !many && !SYSTEM.includes(name))

const targets = (entity) => arrowsOf(entity).flatMap(({ types }) => types)
  .filter((type) => model.byType.has(type) && type !== entity.type)

const isLarger = (entity, other) =>
  (entity.attributes.length - other.attributes.length || (entity.type > other.type ? 1 : -1)) > 0

/** Relationships that are to-many on both sides, told once: by the larger of the two. */
const mutual = (entity) => entity.relationships.filter(({ many }) => many).flatMap(({ name, types }) =>
  types.map((type) => model.byType.get(type))
    .filter((other) => other && other !== entity && !targets(other).includes(entity.type) && isLarger(entity, other))
    .map((other) => ({ name, other })))

/** Of each type, those that it leads to, and those that lead to it: found once, as there may be hundreds. */
function ways() {
  const to = new Map(model.entities.map((entity) =>
    [entity.type, [...targets(entity), ...mutual(entity).map(({ other }) => other.type)]]))
  const from = new Map(model.entities.map(({ type }) => [type, []]))
  for (const [type, found] of to) for (const one of found) from.get(one).push(type)
  return { to, from }
}

/** Who leads to nobody stands first, but near to who leads to him. */
function layers() {
  const { to, from } = ways()
  const leads = ({ type }) => to.get(type)
  const rank = new Map()
  const of = (entity, seen) => {
    if (rank.has(entity.type)) return rank.get(entity.type)
    if (seen.includes(entity.type)) return 0
    const own = 1 + Math.max(-1, ...leads(entity).map((type) => of(model.byType.get(type), [...seen, entity.type])))
    rank.set(entity.type, own)
    return own
  }
  model.entities.forEach((entity) => of(entity, []))
  for (const entity of [...model.entities].sort((a, b) => rank.get(b.type) - rank.get(a.type))) {
    const above = from.get(entity.type).map((type) => rank.get(type)).filter((one) => one > rank.get(entity.type))
    if (above.length > 0) rank.set(entity.type, Math.min(...above) - 1)
  }
  const columns = []
  for (const entity of model.entities) (columns[rank.get(entity.type)] ??= []).push(entity)
  return columns.filter(Boolean).map((column) => column.sort((a, b) => leads(b).length - leads(a).length))
}

function place() {
  const boxes = new Map()
  layers().forEach((column, i) => {
    let y = 20
    for (const entity of column) {
      const rows = linesOf(entity)
      const high = TITLE + Math.min(rows.length, MOST + 1) * LINE + 10
      boxes.set(entity.type, { entity, rows, x: 20 + i * (WIDE + GAP.x), y, high })
      y += high + GAP.y
    }
  })
  return boxes
}

const line = ({ name, kind, required }, x, y) => [
  svg('text', { x: x + 10, y }, short(name, 18) + (required ? ' *' : '')),
  svg('text', { class: 'soft', x: x + WIDE - 10, y, 'text-anchor': 'end' }, kind)
]

function box({ entity, rows, x, y, high }) {
  const rest = { name: `and ${rows.length - MOST} more`, kind: '' }
  const lines = rows.length > MOST + 1 ? [...rows.slice(0, MOST), rest] : rows
  return svg('a', { href: link(['data', entity.collection]), 'aria-label': entity.title },
    svg('rect', { x, y, width: WIDE, height: high, rx: 8 }),
    svg('rect', { class: 'title', x, y, width: WIDE, height: TITLE, rx: 8 }),
    svg('text', { class: 'name', x: x + 10, y: y + 20 }, short(entity.name, 22)),
    lines.map((one, i) => line(one, x, y + TITLE + 17 + i * LINE)))
}

/** A curve that leaves and comes in level. */
function curve(x1, y1, x2, y2, bend, props, title) {
  const d = `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
  return svg('path', { d, ...props }, svg('title', null, title))
}

function arrow(boxes, from, name, type) {
  const to = boxes.get(type)
  if (!to) return null
  const row = Math.min(from.rows.findIndex((one) => one.name === name), MOST)
  const y1 = from.y + TITLE + 13 + row * LINE
  const y2 = to.y + TITLE / 2
  const title = `${from.entity.name}.${name} leads to ${to.entity.name}`
  const props = { 'marker-end': 'url(#tip)' }
  if (to === from) {
    const d = `M${from.x + WIDE} ${y1}c40 0 40 ${y2 - y1} 6 ${y2 - y1}`
    return svg('path', { d, ...props }, svg('title', null, title))
  }
  const [x1, x2] = from.x > to.x ? [from.x, to.x + WIDE + 6] : [from.x + WIDE, to.x - 6]
  return curve(x1, y1, x2, y2, (x2 - x1) / 2, props, title)
}

/** A line between the titles of two. */
function tie(one, { name, other }) {
  const [left, right] = one.x < other.x ? [one, other] : [other, one]
  const title = `${one.entity.name}.${name}: several of ${other.entity.name}`
  return curve(left.x + WIDE, left.y + TITLE / 2, right.x, right.y + TITLE / 2, 55, { class: 'tie' }, title)
}

const tip = () => svg('defs', null, svg('marker', {
  id: 'tip', viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 8, markerHeight: 8, orient: 'auto'
}, svg('path', { d: 'M0 0L8 4L0 8z' })))

function picture() {
  const boxes = place()
  const all = [...boxes.values()]
  const width = Math.max(...all.map(({ x }) => x)) + WIDE + 60
  const height = Math.max(...all.map(({ y, high }) => y + high)) + 20
  const tiesOf = (one) => mutual(one.entity).map(({ name, other }) => tie(one, { name, other: boxes.get(other.type) }))
  const arrows = (from) => arrowsOf(from.entity)
    .flatMap(({ name, types }) => types.map((type) => arrow(boxes, from, name, type)))
  return svg('svg', {
    viewBox: `0 0 ${width} ${height}`, width, height, class: width > LARGE ? 'large' : undefined,
    role: 'group', 'aria-label': 'Entities and their relationships'
  }, tip(), all.flatMap(tiesOf), all.flatMap(arrows), all.map(box))
}

const said = ({ name, many, types }) => h('li', null, h('code', null, name), many ? ': several of ' : ': one of ',
  types.map((type) => model.byType.get(type)?.title ?? type).join(' or '))

const inWords = ({ title, description, relationships }) => h('li', null,
  h('strong', null, title), ' ', h('span', { class: 'muted' }, description),
  h('ul', null, relationships.map(said)))

const WHAT = 'What is declared: entities with their fields (* required), and where they lead.'

export function show() {
  const title = head('Declarations', { over: 'API', under: WHAT })
  if (model.entities.length === 0) return [title, empty('Nothing is declared yet.')]
  return [
    title,
    h('div', { class: 'picture', tabindex: 0, role: 'region', 'aria-label': 'Picture' }, picture()),
    h('details', { class: 'panel' }, h('summary', null, 'As a list'),
      h('ul', { class: 'stack' }, model.entities.map(inWords)))
  ]
}
