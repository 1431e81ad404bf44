// What the service has, by its OpenAPI document: entities with their fields
// and relationships, and which operations there are; and what of that the
// roles of the caller allow.  What neither says is not shown.

import { get } from './api.js'
import { kindOfIds } from './rsql.js'
import { words } from './text.js'

const TITLES = ['name', 'title', 'number', 'label', 'username', 'subject', 'code', 'sku', 'key', 'email']

let document = null

export const model = {
  version: 0,
  entities: [],
  byType: new Map(),
  hidden: new Set(),
  refused: new Set(),
  permissions: null
}

/** Loads the document of a version; that of the first there is, without one. */
export async function load() {
  for (let version = 1; version <= 9 && document === null; version++) {
    try {
      document = await get(`/api/v${version}/openapi.json`, {}, { cache: 'no-cache' })
      model.version = version
    } catch (error) {
      if (error.status !== 404) throw error
    }
  }
  if (document === null) return
  for (const path of Object.keys(document.paths)) {
    const found = new RegExp(`^/api/v${model.version}/([^/{]+)$`).exec(path)
    const entity = found && readEntity(found[1], path)
    if (entity) {
      model.entities.push(entity)
      model.byType.set(entity.type, entity)
    }
  }
  model.entities.sort((a, b) => a.title.localeCompare(b.title))
}

export const openapi = () => document
export const has = (path, method = 'get') => Boolean(document?.paths[path]?.[method])
export const entityOf = (collection) => model.entities.find((entity) => entity.collection === collection)

export function deref(schema) {
  let found = schema
  for (let depth = 0; found?.$ref && depth < 9; depth++) {
    found = found.$ref.split('/').slice(1).reduce((at, name) => at?.[name], document)
  }
  return found ?? {}
}

export const schemaOf = (name) => document?.components.schemas[name]

/** The schema of what an operation takes. */
export const bodyOf = (path, method) =>
  deref(Object.values(deref(document?.paths[path]?.[method]?.requestBody ?? {}).content ?? {})[0]?.schema ?? {})

/** The parameters of an operation, with those of its path. */
export function parametersOf(path, method) {
  const item = document?.paths[path] ?? {}
  return [...(item.parameters ?? []), ...(item[method]?.parameters ?? [])].map(deref)
}

function readEntity(collection, base) {
  const item = document.paths[base]
  const list = item.get?.responses?.['200']?.content?.['application/vnd.api+json']?.schema?.$ref
  const name = /\/(\w+)ListDocument$/.exec(list ?? '')?.[1]
  const resource = schemaOf(`${name}Resource`)
  if (!resource) return null
  const one = `${base}/{id}`
  const asked = parametersOf(base, 'get').map((parameter) => parameter.name)
  const entity = {
    name,
    collection,
    base,
    type: resource.properties.type.const,
    title: words(collection),
    single: words(name),
    description: resource.description ?? '',
    can: {
      create: has(base, 'post'), update: has(one, 'patch'), delete: has(one, 'delete'),
      restore: has(`${one}/restore`, 'post'), history: has(`${one}/history`),
      deleted: asked.some((parameter) => /^show(\[|$)/.test(parameter)),
      asOf: parametersOf(one, 'get').some((parameter) => parameter.name === 'asOf')
    }
  }
  entity.id = readId(name, resource)
  entity.attributes = readAttributes(name, resource)
  entity.relationships = readRelationships(name, resource, one)
  entity.label = labelField(entity.attributes)
  return entity
}

const dataOf = (name, verb) => schemaOf(`${name}${verb}Document`)?.properties.data.properties ?? {}

/** How ids look, and whether one is chosen with a new resource, or has to be. */
function readId(name, resource) {
  const schema = deref(resource.properties.id)
  const created = schemaOf(`${name}CreateDocument`)?.properties.data
  return {
    kind: kindOfIds(schema),
    create: created?.properties.id && deref(created.properties.id),
    required: (created?.required ?? []).includes('id')
  }
}

function readAttributes(name, resource) {
  const shown = deref(resource.properties.attributes ?? {}).properties ?? {}
  const [create, update] = ['Create', 'Update'].map((verb) => dataOf(name, verb).attributes ?? {})
  const needed = new Set(create.required ?? [])
  const names = new Set([...Object.keys(shown), ...Object.keys(create.properties ?? {})])
  return [...names].map((attribute) => {
    const schema = deref(shown[attribute] ?? create.properties[attribute])
    return {
      name: attribute,
      title: words(attribute),
      schema,
      create: create.properties?.[attribute] && deref(create.properties[attribute]),
      update: update.properties?.[attribute] && deref(update.properties[attribute]),
      shown: attribute in shown,
      required: needed.has(attribute),
      kind: kindOf(schema)
    }
  })
}

function readRelationships(name, resource, one) {
  const shown = deref(resource.properties.relationships ?? {}).properties ?? {}
  const [create, update] = ['Create', 'Update'].map((verb) => dataOf(name, verb).relationships ?? {})
  const needed = new Set(create.required ?? [])
  return Object.entries(shown).map(([relationship, reference]) => {
    const data = deref(deref(reference).properties?.data ?? {})
    const many = data.type === 'array'
    const members = many ? [data.items] : data.anyOf ?? [data]
    const types = members.flatMap((member) => {
      const type = deref(member).properties?.type
      return type?.enum ?? (type?.const ? [type.const] : [])
    })
    return {
      name: relationship,
      title: words(relationship),
      many,
      types: [...new Set(types)],
      required: needed.has(relationship),
      create: relationship in (create.properties ?? {}),
      update: relationship in (update.properties ?? {}),
      can: {
        list: has(`${one}/${relationship}`),
        add: has(`${one}/relationships/${relationship}`, 'post'),
        remove: has(`${one}/relationships/${relationship}`, 'delete')
      }
    }
  })
}

/** How a value of a schema is shown and put in; "line" is text of one line, of no known length. */
export function kindOf(schema) {
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null')
  if (schema.enum || schema.const !== undefined) return 'enum'
  if (types.includes('boolean')) return 'boolean'
  if (types.includes('number')) return 'number'
  if (types.includes('integer')) return 'integer'
  if (types.includes('array')) return [deref(schema.items).type ?? []].flat().includes('string') ? 'list' : 'json'
  if (!types.includes('string')) return 'json'
  if (['date', 'date-time', 'time', 'password', 'uuid'].includes(schema.format)) return schema.format
  return schema.format !== 'line' && (schema.maxLength ?? 9999) > 255 ? 'text' : 'string'
}

export const isNullable = (schema) => [schema?.type ?? []].flat().includes('null')

function labelField(attributes) {
  const texts = attributes.filter(({ shown, kind }) => shown && ['string', 'text'].includes(kind))
  return TITLES.map((title) => texts.find(({ name }) => name === title)).find(Boolean) ??
    texts.find(({ schema }) => /Unique/.test(schema.description ?? '')) ??
    texts.find(({ required }) => required) ?? texts[0] ?? null
}

export const SYSTEM = ['createdAt', 'updatedAt', 'createdBy', 'updatedBy']

const PERMISSIONS = '/auth/me/permissions'

/** Asks what the caller's roles allow; a service that does not tell is tried out. */
export async function loadPermissions() {
  model.permissions = has(PERMISSIONS) ? await get(PERMISSIONS) : null
  model.hidden.clear()
  model.refused.clear()
}

const NOTHING = { operations: [], readable: [], writable: [] }
const allowed = (type) => model.permissions === null ? null : model.permissions[type] ?? NOTHING

/** Roles allow an operation on an entity, as far as is known. */
export const permits = ({ type }, operation) =>
  (allowed(type)?.operations.includes(operation) ?? true) && !model.refused.has(`${operation} ${type}`)

/** All names that one may read or write, as the manifest declares them: the document has attributes apart. */
function orderOf(type) {
  const { readable, writable } = allowed(type) ?? NOTHING
  const order = [...readable]
  writable.forEach((name, i) => {
    if (!order.includes(name)) order.splice(order.indexOf(writable[i - 1]) + 1, 0, name)
  })
  return order
}

/** Attributes and relationships in the order of the manifest; what is not known to have a place comes behind. */
export function inOrder({ type }, fields) {
  const places = new Map(orderOf(type).map((name, i) => [name, i]))
  const place = ({ name }) => places.get(name) ?? places.size + (SYSTEM.includes(name) ? 1 : 0)
  return [...fields].sort((a, b) => place(a) - place(b))
}

/** There is such an operation, and it is allowed. */
export const may = (entity, operation) => Boolean(entity.can[operation]) && permits(entity, operation)

export const mayShowDeleted = (entity) => entity.can.deleted && permits(entity, 'restore')

/** A refusal by role holds for all that is alike: it is not offered again. */
export function learn(error, operation, entity) {
  const isByRole = error.status === 403 && /roles do not allow/.test(error.message)
  if (isByRole) model.refused.add(`${operation} ${entity.type}`)
  throw error
}

/** A field that this caller turned out not to have. */
export const hide = (type, name) => model.hidden.add(`${type} ${name}`)
export const isHidden = (type, name) =>
  model.hidden.has(`${type} ${name}`) || !(allowed(type)?.readable.includes(name) ?? true)
export const isWritable = (type, name) => allowed(type)?.writable.includes(name) ?? true

/** What a resource is called. */
export function labelOf(resource) {
  const label = model.byType.get(resource?.type)?.label
  const text = label && resource.attributes?.[label.name]
  return text === undefined || text === null || text === '' ? null : String(text)
}
