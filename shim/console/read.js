// Resources as pages show them: which fields are asked for, and what is done
// when the caller may not have one of them.

import { at, get } from './api.js'
import { h } from './element.js'
import { SYSTEM, hide, inOrder, isHidden, labelOf, model } from './model.js'
import { link } from './route.js'
import { shortId } from './text.js'
import { value } from './ui.js'

const TRIES = 12

export const shownAttributes = (entity) =>
  entity.attributes.filter(({ name, shown }) => shown && !isHidden(entity.type, name))

export const shownRelationships = (entity) => entity.relationships.filter(({ name }) => !isHidden(entity.type, name))

const toOne = (entity) => shownRelationships(entity).filter(({ many }) => !many)

/** What has a value in the resource itself, in order. */
export const shownFields = (entity) => inOrder(entity, [...shownAttributes(entity), ...toOne(entity)])

/** include and fields for these columns; of what is linked, its name alone. */
export function fieldsFor(entity, columns) {
  const named = new Map([[entity.type, new Set(columns.filter((name) => !isHidden(entity.type, name)))]])
  const linked = toOne(entity).filter(({ name }) => columns.includes(name))
  for (const type of linked.flatMap(({ types }) => types)) {
    const label = model.byType.get(type)?.label
    if (!named.has(type)) named.set(type, new Set())
    if (label && !isHidden(type, label.name)) named.get(type).add(label.name)
  }
  const query = linked.length > 0 ? { include: linked.map(({ name }) => name).join(',') } : {}
  for (const [type, names] of named) query[`fields[${type}]`] = names.size > 0 ? [...names].join(',') : EMPTY
  return query
}

/** fields[x]= may be empty, other parameters not. */
const EMPTY = { toString: () => '' }

/** Reads, and learns which fields and targets this caller does not have. */
export async function read(path, entity, columns, query, options) {
  let wanted = columns
  for (let tries = 0; ; tries++) {
    try {
      const document = await get(path, { ...query, ...fieldsFor(entity, wanted) }, options)
      index(document)
      return document
    } catch (error) {
      const type = /^fields\[(.+)\]$/.exec(error.faults?.[0]?.source?.parameter ?? '')?.[1]
      const field = /has no field "([^"]+)"/.exec(error.message)?.[1]
      const target = error.faults?.[0]?.source?.parameter === 'include'
      if (tries === TRIES) throw error
      if (error.code === 'INVALID_FIELDS' && type && field) hide(type, field)
      else if (target) wanted = wanted.filter((name) => !entity.relationships.some((one) => one.name === name))
      else throw error
    }
  }
}

const names = new Map()

/** Remembers what linked resources are called. */
function index(document) {
  for (const resource of [document.data, document.included ?? []].flat()) {
    if (resource && labelOf(resource) !== null) names.set(`${resource.type} ${resource.id}`, labelOf(resource))
  }
}

export const nameOf = ({ type, id }) => names.get(`${type} ${id}`) ?? null

/** What a relationship to one leads to, by its name. */
export function linkTo(one) {
  if (!one) return value(null)
  const target = model.byType.get(one.type)
  const text = nameOf(one) ?? shortId(one.id)
  return target ? h('a', { href: link(['data', target.collection, one.id]) }, text) : text
}

export const remember = (resource) => index({ data: resource })

/** The columns that a table begins with, in order: the name, what is short, links; not who wrote it. */
export function firstColumns(entity, most = 7) {
  const isName = ({ name }) => name === entity.label?.name
  const links = toOne(entity).filter(({ name }) => !SYSTEM.includes(name)).slice(0, 2)
  const short = shownAttributes(entity)
    .filter((one) => !['text', 'json', 'list', 'uuid'].includes(one.kind) && !isName(one))
  const named = shownAttributes(entity).filter(isName)
  const chosen = [...named, ...links, ...short.slice(0, most - named.length - links.length)]
  return shownFields(entity).filter((one) => chosen.includes(one)).map(({ name }) => name)
}

export const pathOf = (entity, id, ...more) => entity.base + [id, ...more].map((part) => at`/${part}`).join('')
