// Every operation of the description: its parameters, a request, the answer,
// and the same for curl.

import { at, exchange, headersFor, withQuery } from './api.js'
import { h, put } from './element.js'
import { form } from './form.js'
import { deref, openapi, parametersOf } from './model.js'
import { link } from './route.js'
import { pretty, words } from './text.js'
import { copy, empty, head } from './ui.js'

const VERBS = ['get', 'post', 'put', 'patch', 'delete']
const DEEPEST = 6

function operations() {
  return Object.entries(openapi()?.paths ?? {}).flatMap(([path, item]) => VERBS.filter((verb) => item[verb])
    .map((verb) => ({ path, verb, id: item[verb].operationId, ...item[verb], tag: item[verb].tags?.[0] ?? '' })))
}

/** A body to begin with: what is required, and a few more on the first levels. */
function sample(given, depth = 0) {
  const schema = deref(given)
  const types = [schema.type ?? []].flat()
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf) return sample(schema.anyOf[0], depth)
  if (types.includes('object')) {
    const wanted = depth > DEEPEST ? [] : schema.required?.length > 0 ? schema.required : Object.keys(schema.properties ?? {}).slice(0, 4)
    return Object.fromEntries(wanted.filter((name) => schema.properties?.[name]).map((name) => [name, sample(schema.properties[name], depth + 1)]))
  }
  if (types.includes('array')) return schema.minItems > 0 && schema.items ? [sample(schema.items, depth + 1)] : []
  if (types.includes('boolean')) return false
  if (types.includes('integer') || types.includes('number')) return schema.minimum ?? 0
  return { uuid: '00000000-0000-0000-0000-000000000000', date: '2026-01-31', 'date-time': '2026-01-31T12:00:00Z' }[schema.format] ?? 'string'
}

const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`

/** The token is not part of it: it would end up in a shell's history. */
function curl(method, target, headers, body) {
  const lines = [`curl -gsS -X ${method} ${quoted(new URL(target.slice(1), new URL('../', document.baseURI)))}`, '-H "Authorization: Bearer $TOKEN"',
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)]
  if (body !== undefined) lines.push(`-d ${quoted(body)}`)
  return lines.join(' \\\n  ')
}

function detail(operation, signal) {
  const parameters = parametersOf(operation.path, operation.verb)
  const media = deref(operation.requestBody ?? {}).content ?? {}
  const schema = Object.values(media)[0]?.schema
  const answer = h('div', { class: 'stack', role: 'status' })
  const fields = parameters.map(({ name, in: place, required, schema: given = {}, description }) => ({
    name, title: name, required, hint: [place, description].filter(Boolean).join(': '),
    schema: name === 'fields' ? { type: 'string', format: 'line' } : given.enum ? given : { type: 'string', format: given.type === 'boolean' ? undefined : 'line', ...(given.type === 'boolean' ? { enum: ['true', 'false'] } : {}) }
  }))
  if (schema) fields.push({ name: 'body', title: 'Body', schema: { type: 'string' }, hint: Object.keys(media)[0] })
  const made = form({
    fields,
    values: schema ? { body: pretty(sample(schema)) } : {},
    submit: 'Send',
    all: true,
    columns: fields.length > 3,
    save: async (said) => {
      const of = (place) => parameters.filter((one) => one.in === place && said[one.name] !== undefined)
      const path = operation.path.replace(/\{(\w+)\}/g, (whole, name) => at`${said[name] ?? ''}`)
      // fields is written as it stands in an address: [invoices]=number,total
      const sparse = said.fields && of('query').some(({ name }) => name === 'fields') ? said.fields.split('&').map((one) => one.split('=')) : []
      const query = Object.fromEntries([...of('query').filter(({ name }) => name !== 'fields').map(({ name }) => [name, said[name]]),
        ...sparse.map(([name, list]) => [`fields${name.trim()}`, list])])
      const target = withQuery(path, query)
      const extra = Object.fromEntries(of('header').map(({ name }) => [name, said[name]]))
      const options = { body: schema ? said.body ?? '' : undefined, headers: extra, signal }
      const command = curl(operation.verb.toUpperCase(), target, headersFor(target, options), options.body)
      put(answer, h('p', { class: 'muted' }, 'Waiting…'))
      const got = await exchange(operation.verb.toUpperCase(), target, options)
      put(answer,
        h('div', { class: 'row' }, h('h2', null, 'Answer'), h('span', { class: `chip ${got.status < 400 ? 'SUCCESS' : 'FAILURE'}` }, got.status), h('span', { class: 'muted' }, `${Math.round(got.millis)} ms, ${got.text.length} characters`)),
        h('details', null, h('summary', null, 'Headers'), h('pre', null, [...got.headers].map(([name, value]) => `${name}: ${value}`).join('\n'))),
        h('pre', { tabindex: 0, class: 'answer' }, got.json ? pretty(got.json) : got.text || '(nothing)'),
        h('div', { class: 'row' }, h('h2', { class: 'grow' }, 'As curl'), copy(command)), h('pre', { tabindex: 0 }, command))
      answer.scrollIntoView({ block: 'nearest' })
    }
  })
  return h('div', { class: 'stack' }, h('section', { class: 'panel stack', 'aria-label': 'Request' },
    h('h2', null, operation.summary ?? operation.id),
    h('p', null, h('code', null, operation.verb.toUpperCase(), ' ', operation.path)),
    fields.length === 0 && h('p', { class: 'muted' }, 'It takes no parameters.'), made.node), answer)
}

export function show({ parts: [, id], signal }) {
  const all = operations()
  const chosen = all.find((one) => one.id === id)
  const list = h('ul')
  const fill = (text) => {
    const fit = all.filter((one) => `${one.verb} ${one.path} ${one.summary}`.toLowerCase().includes(text.toLowerCase()))
    put(list, [...new Set(fit.map(({ tag }) => tag))].map((tag) => h('li', null, h('h3', { class: 'over' }, words(tag)),
      h('ul', null, fit.filter((one) => one.tag === tag).map((one) => h('li', null,
        h('a', { href: link(['explorer', one.id]), title: one.summary, 'aria-current': one.id === id ? 'true' : undefined },
          h('span', { class: `verb ${one.verb}` }, one.verb.toUpperCase()), h('span', null, one.path))))))))
  }
  fill('')
  return [
    head('Explorer', { over: 'API', under: 'Try what the service can do, as you. What is written here is really done.' }),
    h('div', { class: 'split' },
      h('nav', { class: 'panel stack', 'aria-label': 'Operations' },
        h('input', { type: 'search', 'aria-label': 'Find an operation', placeholder: 'Find an operation', oninput: (event) => fill(event.target.value.trim()) }),
        h('div', { class: 'operations', tabindex: 0, role: 'region', 'aria-label': 'All operations' }, list)),
      chosen ? detail(chosen, signal) : empty('Choose an operation.'))
  ]
}
