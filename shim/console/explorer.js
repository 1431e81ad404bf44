// Every operation of the description: its parameters, a request, the answer,
// and the same for curl.

import { ApiError, at, exchange, headersFor, withQuery } from './api.js'
import { h, put } from './element.js'
import { form } from './form.js'
import { deref, openapi, parametersOf } from './model.js'
import { link } from './route.js'
import { pretty, words } from './text.js'
import { copy, empty, head } from './ui.js'

const VERBS = ['get', 'post', 'put', 'patch', 'delete']
const DEEPEST = 6
const LEAD = 60
const EXAMPLES = {
  uuid: '00000000-0000-0000-0000-000000000000', date: '2026-01-31', 'date-time': '2026-01-31T12:00:00Z'
}

function operations() {
  return Object.entries(openapi()?.paths ?? {}).flatMap(([path, item]) => VERBS.filter((verb) => item[verb])
    .map((verb) => ({ path, verb, id: item[verb].operationId, ...item[verb], tag: item[verb].tags?.[0] ?? '' })))
}

function sampleObject({ required, properties = {} }, depth) {
  const wanted = depth > DEEPEST ? [] : required?.length > 0 ? required : Object.keys(properties).slice(0, 4)
  return Object.fromEntries(wanted.filter((name) => properties[name])
    .map((name) => [name, sample(properties[name], depth + 1)]))
}

/** A body to begin with: what is required, and a few more on the first levels. */
function sample(given, depth = 0) {
  const schema = deref(given)
  const types = [schema.type ?? []].flat()
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf) return sample(schema.anyOf[0], depth)
  if (types.includes('object')) return sampleObject(schema, depth)
  if (types.includes('array')) return schema.minItems > 0 && schema.items ? [sample(schema.items, depth + 1)] : []
  if (types.includes('boolean')) return false
  if (types.includes('integer') || types.includes('number')) return schema.minimum ?? 0
  return EXAMPLES[schema.format] ?? 'string'
}

/** What is put in for a parameter. */
function fieldOf({ name, in: place, required, schema = {}, description }) {
  const choices = schema.enum ?? (schema.type === 'boolean' ? ['true', 'false'] : undefined)
  return {
    name,
    title: name,
    required,
    hint: [place, description].filter(Boolean).join(': '),
    schema: choices && name !== 'fields' ? { enum: choices } : { type: 'string', format: 'line' }
  }
}

/** fields is written as it stands in an address: [invoices]=number,total */
const sparse = (text) => (text ? text.split('&') : []).map((one) => {
  const [, name, list] = /^([^=]*)=?(.*)$/s.exec(one)
  return [`fields${name.trim()}`, list]
})

/** { method, target, options } of what was put in; what the path lacks stays as it is described. */
function requestOf(operation, parameters, said, hasBody) {
  const given = (place) => parameters.filter((one) => one.in === place && said[one.name] !== undefined)
  const path = operation.path.replace(/\{(\w+)\}/g, (whole, name) => said[name] ? at`${said[name]}` : whole)
  const plain = given('query').filter(({ name }) => name !== 'fields')
  const query = Object.fromEntries([...plain.map(({ name }) => [name, said[name]]), ...sparse(said.fields)])
  return {
    method: operation.verb.toUpperCase(),
    target: withQuery(path, query),
    options: {
      body: hasBody ? said.body ?? '' : undefined,
      headers: Object.fromEntries(given('header').map(({ name }) => [name, said[name]])),
      anonymous: operation.security?.length === 0
    }
  }
}

/** Whoever forgot a part of the path is told at its field. */
function requirePath(parameters, said) {
  const faults = parameters.filter((one) => one.in === 'path' && !said[one.name])
    .map(({ name }) => ({ detail: 'The address needs this.', source: { pointer: `/${name}` } }))
  if (faults.length > 0) throw new ApiError(0, faults)
}

const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`

/** The token is not part of it: it would end up in a shell's history. */
function curl({ method, target, options }) {
  const url = new URL('../', document.baseURI).href + target.slice(1)
  const headers = Object.entries(headersFor(target, options))
    .map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)
  return [
    `curl -gsS -X ${method} ${quoted(url)}`,
    ...(options.anonymous ? [] : ['-H "Authorization: Bearer $TOKEN"']),
    ...headers,
    ...(options.body === undefined ? [] : [`--data-binary ${quoted(options.body)}`])
  ].join(' \\\n  ')
}

function answerOf({ status, millis, text, json, headers }) {
  const lines = [...headers].map(([name, value]) => `${name}: ${value}`).join('\n')
  return [
    h('div', { class: 'row' },
      h('h2', null, 'Answer'),
      h('span', { class: `chip ${status < 400 ? 'SUCCESS' : 'FAILURE'}` }, status),
      h('span', { class: 'muted' }, `${Math.round(millis)} ms, ${text.length} characters`)),
    h('details', null, h('summary', null, 'Headers'), h('pre', null, lines)),
    h('pre', { tabindex: 0, class: 'answer' }, json ? pretty(json) : text || '(nothing)')
  ]
}

function detail(operation, signal) {
  const parameters = parametersOf(operation.path, operation.verb)
  const media = deref(operation.requestBody ?? {}).content ?? {}
  const [type, content] = Object.entries(media)[0] ?? []
  const fields = parameters.map(fieldOf)
  if (content) fields.push({ name: 'body', title: 'Body', schema: { type: 'string' }, hint: type })
  const answer = h('div', { class: 'stack', role: 'status' })
  const command = h('pre', { tabindex: 0, class: 'command' })
  const requestNow = (said) => requestOf(operation, parameters, said, Boolean(content))
  const made = form({
    fields,
    values: content ? { body: pretty(sample(content.schema)) } : {},
    submit: 'Send',
    all: true,
    columns: fields.length > 3,
    save: async (said) => {
      requirePath(parameters, said)
      const { method, target, options } = requestNow(said)
      put(answer, h('p', { class: 'muted' }, 'Waiting…'))
      try {
        put(answer, answerOf(await exchange(method, target, { ...options, signal })))
      } catch (error) {
        put(answer)
        throw error
      }
      answer.scrollIntoView({ block: 'nearest' })
    }
  })
  const tell = () => { command.textContent = curl(requestNow(made.peek())) }
  made.node.addEventListener('input', tell)
  tell()
  return h('div', { class: 'stack detail' },
    h('section', { class: 'panel stack', 'aria-label': 'Request' },
      h('h2', null, operation.summary ?? operation.id),
      h('p', null, h('code', null, operation.verb.toUpperCase(), ' ', operation.path)),
      fields.length === 0 && h('p', { class: 'muted' }, 'It takes no parameters.'),
      made.node),
    answer,
    h('section', { class: 'panel stack', 'aria-label': 'As curl' },
      h('div', { class: 'row' }, h('h2', { class: 'grow' }, 'As curl'), copy(() => command.textContent)), command))
}

const entry = (one, isChosen) => h('li', null,
  h('a', { href: link(['explorer', one.id]), title: one.summary, 'aria-current': isChosen ? 'true' : undefined },
    h('span', { class: `verb ${one.verb}` }, one.verb.toUpperCase()),
    h('span', null, one.path)))

const WARNING = 'Try what the service can do, as you. What is written here is really done.'

export function show({ parts: [, id], signal }) {
  const all = operations()
  const chosen = all.find((one) => one.id === id)
  const list = h('ul')
  const box = h('div', { class: 'operations', tabindex: 0, role: 'region', 'aria-label': 'All operations' }, list)
  const fill = (text) => {
    const wanted = text.toLowerCase()
    const fit = all.filter((one) => `${one.verb} ${one.path} ${one.summary}`.toLowerCase().includes(wanted))
    const tags = [...new Set(fit.map(({ tag }) => tag))]
    put(list,
      tags.map((tag) => h('li', null, h('h3', { class: 'over' }, words(tag)),
        h('ul', null, fit.filter((one) => one.tag === tag).map((one) => entry(one, one === chosen))))),
      fit.length === 0 && h('li', { class: 'muted' }, 'No operation is called so.'))
  }
  fill('')
  requestAnimationFrame(() => { box.scrollTop = (list.querySelector('[aria-current]')?.offsetTop ?? 0) - LEAD })
  return [
    head('Explorer', { over: 'API', under: WARNING }),
    h('div', { class: 'split' },
      h('nav', { class: 'panel stack', 'aria-label': 'Operations' },
        h('input', {
          type: 'search', 'aria-label': 'Find an operation', placeholder: 'Find an operation',
          oninput: (event) => fill(event.target.value.trim())
        }),
        box),
      chosen ? detail(chosen, signal) : empty('Choose an operation.'))
  ]
}
