// One resource: what it is, a form to change it, and what it leads to.

import { ApiError, get, post, request } from './api.js'
import { h, put } from './element.js'
import { form } from './form.js'
import { entityOf, labelOf, model } from './model.js'
import { picker } from './picker.js'
import { nameOf, pathOf, read, shownAttributes, shownRelationships } from './read.js'
import { sections } from './relations.js'
import { go, link } from './route.js'
import { dateTime, shortId } from './text.js'
import { action, button, confirm, dialog, empty, facts, head, notify, time, value } from './ui.js'

const columnsOf = (entity) => [...shownAttributes(entity), ...shownRelationships(entity).filter(({ many }) => !many)].map(({ name }) => name)

const ifMatch = (resource) => resource.meta?.version === undefined ? {} : { 'If-Match': `"${resource.meta.version}"` }

/** A refusal by role holds for all that is alike: it is not offered again. */
export function learn(error, what, entity) {
  if (error.status === 403 && /roles do not allow/.test(error.message)) model.refused.add(`${what} ${entity.type}`)
  throw error
}

const may = (entity, what) => entity.can[what] && !model.refused.has(`${what} ${entity.type}`)

function linkTo(one) {
  if (!one) return value(null)
  const target = model.byType.get(one.type)
  const text = nameOf(one) ?? shortId(one.id)
  return target ? h('a', { href: link(['data', target.collection, one.id]) }, text) : text
}

/** The fields of a form; "set" says whether a new one or a change is made. */
function fieldsOf(entity, set) {
  const attributes = entity.attributes.filter((one) => one[set])
    .map((one) => ({ name: one.name, title: one.title, schema: one[set], required: set === 'create' && one.required }))
  const links = shownRelationships(entity)
    .filter((one) => one[set] && one.types.some((type) => model.byType.has(type)) && (!one.many || (set === 'create' && !ownsMembers(entity, one))))
    .map((one) => ({
      name: one.name, title: one.title, required: set === 'create' && one.required, relationship: one, hint: '',
      input: (props, given) => picker(one, props, given)
    }))
  const split = attributes.findIndex(({ schema }) => (schema.maxLength ?? 9999) > 255 && !schema.enum && [schema.type].flat().includes('string') && !schema.format)
  const place = split < 1 ? Math.min(1, attributes.length) : Math.min(split, 1)
  return [...attributes.slice(0, place), ...links.filter(({ required }) => required), ...attributes.slice(place), ...links.filter(({ required }) => !required)]
}

/** Members that cannot be without this one are made on their own pages. */
const ownsMembers = (entity, relationship) => relationship.types.some((type) =>
  model.byType.get(type)?.relationships.some((back) => !back.many && back.required && back.types.includes(entity.type)))

function documentOf(entity, said, id) {
  const data = { type: entity.type, ...(id ? { id } : {}), attributes: {} }
  for (const [name, given] of Object.entries(said)) {
    if (entity.relationships.some((one) => one.name === name)) (data.relationships ??= {})[name] = { data: given }
    else data.attributes[name] = given
  }
  if (!id && entity.relationships.some(({ required }) => required)) data.relationships ??= {}
  return { data }
}

export async function showNew({ parts: [, collection], query }) {
  const entity = entityOf(collection)
  if (!entity?.can.create) return empty('There is no such entity.')
  const values = {}
  for (const one of entity.relationships) {
    if (query[one.name]) values[one.name] = { type: query[`${one.name}.type`] ?? one.types[0], id: query[one.name] }
  }
  const made = form({
    fields: fieldsOf(entity, 'create').map((field) => values[field.name] && field.relationship ? { ...field, input: (props) => preset(field.relationship, props, values[field.name]) } : field),
    submit: `Create ${entity.single.toLowerCase()}`,
    columns: true,
    cancel: () => history.back(),
    save: async (said) => {
      const { data } = await post(entity.base, documentOf(entity, said)).catch((error) => learn(error, 'create', entity))
      notify(`${entity.single} created.`)
      go(['data', collection, data.id])
    }
  })
  return [head(`New ${entity.single.toLowerCase()}`, { over: h('a', { href: link(['data', collection]) }, entity.title), under: entity.description }), made.node]
}

/** A choice that was made before the form was opened. */
function preset(relationship, props, given) {
  const made = picker(relationship, props, given)
  return { ...made, isChanged: () => true }
}

async function load(entity, id, query, signal) {
  // a state of the past comes without what is linked, and with what is known of it
  if (query.asOf) return (await get(pathOf(entity, id), { asOf: query.asOf }, { signal })).data
  return (await read(pathOf(entity, id), entity, columnsOf(entity), { 'show[deleted]': query.deleted }, { signal })).data
}

export async function show({ parts: [, collection, id], query, signal }) {
  const entity = entityOf(collection)
  if (!entity) return empty('There is no such entity.')
  const resource = await load(entity, id, query, signal).catch((error) => {
    if (error.code !== 'GONE_BEYOND_LOG') throw error
    return null
  })
  const linked = resource && !query.asOf && !resource.meta?.deletedAt && await sections(entity, resource, ifMatch, signal)
  if (!resource) return [head('Unknown'), empty('The audit log does not tell what this was then.', h('a', { class: 'button', href: link(['data', collection, id]) }, 'Show it as it is now'))]
  const place = h('div')
  const deleted = resource.meta?.deletedAt
  const past = query.asOf
  const view = () => put(place, details(entity, resource))
  view()

  const tools = past || deleted ? [] : [
    may(entity, 'update') && button('Edit', () => edit(entity, resource, place, view), { class: 'primary' }),
    may(entity, 'delete') && action('Delete', () => remove(entity, resource), { class: 'danger' })
  ]
  return [
    head(labelOf(resource) ?? shortId(resource.id), {
      over: [h('a', { href: link(['data', collection]) }, entity.title), ' · ', h('code', null, resource.id)],
      tools: [
        may(entity, 'history') && h('a', { class: 'button', href: link(['data', collection, id, 'history']) }, 'History'),
        deleted && may(entity, 'restore') && action('Restore', () => restore(entity, resource.id), { class: 'primary' }),
        ...tools
      ]
    }),
    past && h('p', { class: 'banner' }, `As it was on ${dateTime(past)}. `, h('a', { href: link(['data', collection, id]) }, 'Show it as it is now')),
    deleted && h('p', { class: 'banner' }, 'Deleted ', time(deleted), '.'),
    place,
    linked
  ]
}

function details(entity, resource) {
  return h('section', { class: 'panel', 'aria-label': 'Fields' }, facts([
    ...shownAttributes(entity).filter(({ name }) => name in (resource.attributes ?? {})).map(({ name, title, kind }) => [title, value(resource.attributes[name], kind), name]),
    ...shownRelationships(entity).filter(({ name, many }) => !many && resource.relationships?.[name])
      .map(({ name, title }) => [title, linkTo(resource.relationships[name].data), name]),
    resource.meta?.version !== undefined && ['Version', String(resource.meta.version)]
  ]))
}

const valuesOf = (resource) => ({
  ...resource.attributes,
  ...Object.fromEntries(Object.entries(resource.relationships ?? {}).map(([name, { data }]) => [name, data]))
})

function edit(entity, resource, place, view) {
  const path = pathOf(entity, resource.id)
  const fields = fieldsOf(entity, 'update').filter(({ name }) => name in valuesOf(resource) || !shownAttributes(entity).some((one) => one.name === name))
  const made = form({
    fields,
    values: valuesOf(resource),
    columns: true,
    cancel: view,
    save: async (said) => {
      if (Object.keys(said).length === 0) return view()
      try {
        await request('PATCH', path, { body: documentOf(entity, said, resource.id), headers: ifMatch(resource) }).catch((error) => learn(error, 'update', entity))
      } catch (error) {
        if (error.status !== 412) throw error
        return conflict(entity, resource, said)
      }
      notify(`${entity.single} saved.`)
      go(['data', entity.collection, resource.id])
    }
  })
  put(place, made.node)
  made.focus()
}

/** Somebody was faster: both versions, and which of them is to hold. */
async function conflict(entity, before, said) {
  const now = await load(entity, before.id, {})
  const [was, there] = [valuesOf(before), valuesOf(now)]
  const names = [...entity.attributes, ...entity.relationships].filter(({ name }) => name in said || text(was[name]) !== text(there[name]))
  const cell = (one, of) => one.types ? linkTo(of) : value(of, one.kind)
  const changed = await dialog('Somebody else has changed this meanwhile', (close) => [
    h('p', null, 'Below is what you put in, and what is there now.'),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Both versions' }, h('table', null,
      h('thead', null, h('tr', null, ['Field', 'You had seen', 'You put in', 'There now'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, names.map((one) => h('tr', null, h('th', { scope: 'row' }, one.title), h('td', null, cell(one, was[one.name])),
        h('td', { class: one.name in said ? 'mine' : undefined }, one.name in said ? cell(one, said[one.name]) : h('span', { class: 'muted' }, 'not changed')),
        h('td', { class: text(was[one.name]) === text(there[one.name]) ? undefined : 'theirs' }, cell(one, there[one.name]))))))),
    h('div', { class: 'row end' }, button('Back to the form', () => close()), button('Take what is there', () => close('theirs')),
      button('Save mine over it', () => close('mine'), { class: 'primary' }))
  ], { wide: true })
  if (changed === 'theirs') return go(['data', entity.collection, before.id])
  if (changed !== 'mine') throw new ApiError(412, [{ detail: 'Not saved: this has another version by now.' }])
  await request('PATCH', pathOf(entity, before.id), { body: documentOf(entity, said, before.id), headers: ifMatch(now) })
  notify(`${entity.single} saved.`)
  go(['data', entity.collection, before.id])
}

const text = (of) => JSON.stringify(of instanceof Object && 'id' in of ? of.id : of === undefined ? null : String(of))

async function remove(entity, resource) {
  const name = labelOf(resource) ?? shortId(resource.id)
  const back = may(entity, 'restore')
  if (!await confirm(`Delete ${name}?`, back ? 'It can be restored afterwards.' : 'This cannot be undone.', 'Delete')) return
  await request('DELETE', pathOf(entity, resource.id), { headers: ifMatch(resource) }).catch((error) => learn(error, 'delete', entity))
  notify(`${name} deleted.`, { offer: back && { text: 'Undo', work: () => restore(entity, resource.id) } })
  go(['data', entity.collection])
}

export async function restore(entity, id) {
  try {
    await request('POST', pathOf(entity, id, 'restore')).catch((error) => learn(error, 'restore', entity))
    notify(`${entity.single} restored.`)
    go(['data', entity.collection, id])
  } catch (error) {
    notify(error.message, { kind: 'bad' })
  }
}
