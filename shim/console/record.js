// One resource: what it is, a form to change it, and what it leads to.

import { ApiError, get, post, request } from './api.js'
import { h, put } from './element.js'
import { form } from './form.js'
import { entityOf, inOrder, isWritable, labelOf, learn, may, model, permits } from './model.js'
import { picker } from './picker.js'
import { linkTo, pathOf, read, shownAttributes, shownFields } from './read.js'
import { sections } from './relations.js'
import { go, link } from './route.js'
import { shortId } from './text.js'
import { action, button, confirm, dialog, empty, facts, head, notify, plainTable, time, value } from './ui.js'

const columnsOf = (entity) => shownFields(entity).map(({ name }) => name)

const ifMatch = (resource) => resource.meta?.version === undefined ? {} : { 'If-Match': `"${resource.meta.version}"` }

/** The fields of a form; "set" says whether a new one or a change is made. */
function fieldsOf(entity, set) {
  const isNew = set === 'create'
  const isOpen = (one) => one[set] && isWritable(entity.type, one.name)
  const attributes = entity.attributes.filter(isOpen)
    .map((one) => ({ name: one.name, title: one.title, schema: one[set], required: isNew && one.required }))
  const links = entity.relationships.filter((one) => isOpen(one) && canLink(entity, one, isNew)).map((one) => ({
    name: one.name, title: one.title, required: isNew && one.required, relationship: one, hint: '',
    input: (props, given) => picker(one, props, given)
  }))
  const fields = inOrder(entity, [...attributes, ...links])
  if (!isNew || !entity.id.create) return fields
  return [{ name: 'id', title: 'Id', schema: { type: 'string' }, required: entity.id.required }, ...fields]
}

const canLink = (entity, one, isNew) => one.types.some((type) => model.byType.has(type) && permits({ type }, 'read')) &&
  (!one.many || (isNew && !ownsMembers(entity, one)))

/** Members that cannot be without this one are made on their own pages. */
const ownsMembers = (entity, relationship) => relationship.types.some((type) =>
  model.byType.get(type)?.relationships.some((back) => !back.many && back.required && back.types.includes(entity.type)))

function documentOf(entity, said, id) {
  const data = { type: entity.type, ...(id ? { id } : {}), attributes: {} }
  for (const [name, given] of Object.entries(said)) {
    if (name === 'id') data.id = given
    else if (entity.relationships.some((one) => one.name === name)) (data.relationships ??= {})[name] = { data: given }
    else data.attributes[name] = given
  }
  if (!id && entity.relationships.some(({ required }) => required)) data.relationships ??= {}
  return { data }
}

/** What the address says that a new one leads to, as "New line item" of an invoice does. */
const presets = (entity, query) => Object.fromEntries(entity.relationships.filter(({ name }) => query[name])
  .map(({ name, types }) => [name, { type: query[`${name}.type`] ?? types[0], id: query[name] }]))

/** Where one came from: what the new one leads to, or all of its kind. */
function origin(entity, values) {
  const [from] = Object.values(values)
  const other = from && model.byType.get(from.type)
  return other ? ['data', other.collection, from.id] : ['data', entity.collection]
}

export async function showNew({ parts: [, collection], query }) {
  const entity = entityOf(collection)
  if (!entity?.can.create) return [head('Nothing here'), empty('There is no such entity.')]
  const title = `New ${entity.single.toLowerCase()}`
  if (!may(entity, 'create')) return [head(title), empty('Your roles do not let you make these.', backTo(entity))]
  const values = presets(entity, query)
  const made = form({
    fields: fieldsOf(entity, 'create').map((field) => values[field.name] && field.relationship
      ? { ...field, input: (props) => preset(field.relationship, props, values[field.name]) } : field),
    submit: `Create ${entity.single.toLowerCase()}`,
    columns: true,
    asks: true,
    cancel: () => go(origin(entity, values)),
    save: async (said) => {
      const { data } = await post(entity.base, documentOf(entity, said))
        .catch((error) => learn(error, 'create', entity))
      notify(`${entity.single} created.`)
      go(['data', collection, data.id])
    }
  })
  const over = h('a', { href: link(['data', collection]) }, entity.title)
  return [head(title, { over, under: entity.description }), made.node]
}

const backTo = (entity) =>
  h('a', { class: 'button', href: link(['data', entity.collection]) }, `To ${entity.title.toLowerCase()}`)

/** A choice that was made before the form was opened. */
function preset(relationship, props, given) {
  const made = picker(relationship, props, given)
  return { ...made, isChanged: () => true }
}

/** Null for what the log does not tell. */
async function load(entity, id, { asOf, deleted }, signal) {
  if (!asOf) {
    const query = { 'show[deleted]': deleted }
    return (await read(pathOf(entity, id), entity, columnsOf(entity), query, { signal })).data
  }
  // a state of the past comes without what is linked, and with what is known of it
  try {
    return (await get(pathOf(entity, id), { asOf }, { signal })).data
  } catch (error) {
    if (error.code !== 'GONE_BEYOND_LOG') throw error
    return null
  }
}

export async function show({ parts: [, collection, id], query, signal }) {
  const entity = entityOf(collection)
  if (!entity) return [head('Nothing here'), empty('There is no such entity.')]
  const resource = await load(entity, id, query, signal)
  const now = h('a', { href: link(['data', collection, id]) }, 'Show it as it is now')
  if (!resource) return [head('Unknown'), empty('The audit log does not tell what this was then.', now)]
  const deleted = resource.meta?.deletedAt
  const isNow = !query.asOf && !deleted
  const linked = isNow && await sections(entity, resource, ifMatch, signal)
  const place = h('div')
  const view = () => put(place, details(entity, resource))
  view()
  return [
    head(labelOf(resource) ?? shortId(resource.id), {
      over: [h('a', { href: link(['data', collection]) }, entity.title), ' · ', h('code', null, resource.id)],
      tools: [
        may(entity, 'history') &&
          h('a', { class: 'button', href: link(['data', collection, id, 'history']) }, 'History'),
        deleted && !query.asOf && may(entity, 'restore') &&
          action('Restore', () => restore(entity, resource.id), { class: 'primary' }),
        isNow && may(entity, 'update') &&
          button('Edit', () => edit(entity, resource, place, view), { class: 'primary' }),
        isNow && may(entity, 'delete') && action('Delete', () => remove(entity, resource), { class: 'danger' })
      ]
    }),
    query.asOf && h('p', { class: 'banner' }, 'As it was on ', time(query.asOf), '. ', now),
    deleted && h('p', { class: 'banner' }, 'Deleted ', time(deleted), '.'),
    place,
    linked
  ]
}

function details(entity, resource) {
  const { attributes = {}, relationships = {} } = resource
  const fields = shownFields(entity).filter(({ name }) => name in attributes || name in relationships)
  return h('section', { class: 'panel', 'aria-label': 'Fields' }, facts([
    ...fields.map(({ name, title, kind, types }) =>
      [title, types ? linkTo(relationships[name].data) : value(attributes[name], kind), name]),
    resource.meta?.version !== undefined && ['Version', String(resource.meta.version)]
  ]))
}

const valuesOf = (resource) => ({
  ...resource.attributes,
  ...Object.fromEntries(Object.entries(resource.relationships ?? {}).map(([name, { data }]) => [name, data]))
})

const change = (entity, id, said, headers) =>
  request('PATCH', pathOf(entity, id), { body: documentOf(entity, said, id), headers })

function edit(entity, resource, place, view) {
  const values = valuesOf(resource)
  const isShown = (name) => shownAttributes(entity).some((one) => one.name === name)
  const made = form({
    fields: fieldsOf(entity, 'update').filter(({ name }) => name in values || !isShown(name)),
    values,
    columns: true,
    asks: true,
    cancel: view,
    save: async (said) => {
      if (Object.keys(said).length === 0) return view()
      try {
        await change(entity, resource.id, said, ifMatch(resource))
      } catch (error) {
        return error.status === 412 ? conflict(entity, resource, said) : learn(error, 'update', entity)
      }
      saved(entity, resource.id)
    }
  })
  put(place, made.node)
  made.focus()
}

function saved(entity, id) {
  notify(`${entity.single} saved.`)
  go(['data', entity.collection, id])
}

/** Somebody was faster: both versions, and which of them is to hold. */
async function conflict(entity, before, said) {
  const now = await load(entity, before.id, {})
  const [was, there] = [valuesOf(before), valuesOf(now)]
  const isOther = ({ name }) => text(was[name]) !== text(there[name])
  const fields = inOrder(entity, [...entity.attributes, ...entity.relationships])
    .filter((one) => one.name in said || isOther(one))
  const chosen = await dialog('Somebody else has changed this meanwhile', (close) => [
    h('p', null, 'Below is what you put in, and what is there now.'),
    plainTable('Both versions', ['Field', 'You had seen', 'You put in', 'There now'],
      fields.map((one) => versions(one, was, said, there, isOther(one)))),
    h('div', { class: 'row end' },
      button('Back to the form', () => close()),
      button('Take what is there', () => close('theirs')),
      button('Save mine over it', () => close('mine'), { class: 'primary' }))
  ], { wide: true })
  if (chosen === 'theirs') return go(['data', entity.collection, before.id])
  if (chosen !== 'mine') throw new ApiError(412, [{ detail: 'Not saved: this has another version by now.' }])
  await change(entity, before.id, said, ifMatch(now))
  saved(entity, before.id)
}

function versions(field, was, said, there, isOther) {
  const cell = (of) => field.types ? linkTo(of) : value(of, field.kind)
  const isMine = field.name in said
  return h('tr', null,
    h('th', { scope: 'row' }, field.title),
    h('td', null, cell(was[field.name])),
    h('td', { class: isMine ? 'mine' : undefined },
      isMine ? cell(said[field.name]) : h('span', { class: 'muted' }, 'not changed')),
    h('td', { class: isOther ? 'theirs' : undefined }, cell(there[field.name])))
}

/** To be compared. */
const text = (of) => JSON.stringify(of?.id ?? of ?? null)

async function remove(entity, resource) {
  const name = labelOf(resource) ?? shortId(resource.id)
  const back = may(entity, 'restore')
  const warning = back ? 'It can be restored afterwards.' : 'This cannot be undone.'
  if (!await confirm(`Delete ${name}?`, warning, 'Delete')) return
  await request('DELETE', pathOf(entity, resource.id), { headers: ifMatch(resource) })
    .catch((error) => learn(error, 'delete', entity))
  const undo = { text: 'Undo', work: () => restore(entity, resource.id) }
  notify(`${name} deleted.`, { offer: back && undo })
  go(['data', entity.collection])
}

async function restore(entity, id) {
  try {
    await request('POST', pathOf(entity, id, 'restore')).catch((error) => learn(error, 'restore', entity))
    notify(`${entity.single} restored.`)
    go(['data', entity.collection, id])
  } catch (error) {
    notify(error.message, { kind: 'bad' })
  }
}
