// The service itself: its health with a few metrics, and what was applied.

import { exchange, get } from './api.js'
import { h, put, svg } from './element.js'
import { count, number } from './text.js'
import { empty, facts, head, time, value } from './ui.js'

const EVERY = 2000
const KEEP = 90

/** The samples of Prometheus text, summed up by name. */
function sums(text) {
  const found = new Map()
  for (const [, name, of] of text.matchAll(/^(\w+)(?:\{[^\n]*\})? ([-+.\deE]+)$/gm)) found.set(name, (found.get(name) ?? 0) + Number(of))
  return found
}

const each = (name) => (now, before, seconds) => ((now.get(name) ?? 0) - (before.get(name) ?? 0)) / seconds
const mean = (name) => (now, before) => {
  const calls = (now.get(`${name}_count`) ?? 0) - (before.get(`${name}_count`) ?? 0)
  return calls > 0 ? 1000 * ((now.get(`${name}_sum`) ?? 0) - (before.get(`${name}_sum`) ?? 0)) / calls : 0
}

const PLOTS = [
  ['Requests', 'a second', each('entityapi_http_requests_total')],
  ['Time of a request', 'ms', mean('entityapi_http_request_duration_seconds')],
  ['Time in the database', 'ms', mean('entityapi_database_duration_seconds')],
  ['Requests that wait', '', (now) => now.get('entityapi_pool_waiting') ?? 0],
  ['Processor', '%', (now, before, seconds) => 100 * each('process_cpu_seconds_total')(now, before, seconds)],
  ['Memory of the shim', 'MB', (now) => (now.get('process_resident_memory_bytes') ?? 0) / 1048576]
]

function plot([title, unit, measure]) {
  const line = svg('path', { d: '' })
  const now = h('strong', null, '–')
  const values = []
  return {
    node: h('section', { class: 'panel plot', 'aria-label': title }, h('h2', null, title), h('p', null, now, ` ${unit}`),
      svg('svg', { viewBox: `0 0 ${KEEP} 40`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, line)),
    add(...samples) {
      values.push(measure(...samples))
      if (values.length > KEEP) values.shift()
      const most = Math.max(...values, 1e-9)
      line.setAttribute('d', values.map((one, i) => `${i ? 'L' : 'M'}${KEEP - values.length + i} ${(38 - 36 * one / most).toFixed(1)}`).join(''))
      now.textContent = number(values.at(-1).toFixed(values.at(-1) < 10 ? 1 : 0))
    }
  }
}

async function metrics(signal) {
  const answer = await exchange('GET', '/actuator/prometheus', { signal, anonymous: true })
  return answer.status === 200 ? { at: performance.now(), values: sums(answer.text) } : null
}

const state = (health) => facts([['Service', h('span', { class: `chip ${health.status}` }, health.status)],
  ...Object.entries(health.components ?? {}).map(([name, one]) => [name === 'db' ? 'Database' : name, h('span', { class: `chip ${one.status}` }, one.status)])])

async function health(signal) {
  const read = async () => (await exchange('GET', '/actuator/health', { signal, anonymous: true })).json ?? { status: 'DOWN' }
  const place = h('section', { class: 'panel', 'aria-label': 'State', role: 'status' }, state(await read()))
  let before = await metrics(signal)
  const plots = before ? PLOTS.map(plot) : []
  const go = async () => {
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, EVERY))
      if (document.hidden || signal.aborted) continue
      try {
        put(place, state(await read()))
        const now = before && await metrics(signal)
        if (now) {
          plots.forEach((one) => one.add(now.values, before.values, (now.at - before.at) / 1000))
          before = now
        }
      } catch {
        if (!signal.aborted) put(place, state({ status: 'DOWN' }))
      }
    }
  }
  go()
  return [head('Health', { over: 'Service' }), place, plots.length > 0 ? h('div', { class: 'plots' }, plots.map(({ node }) => node))
    : h('p', { class: 'muted' }, 'Metrics are not shown at this address; the setting "metrics" of the shim changes that.')]
}

const statements = (list) => list.length > 0 && h('details', null, h('summary', null, count(list.length, 'statement')), h('pre', { tabindex: 0 }, list.join(';\n')))

async function migrations(signal) {
  const { status, extensionVersion, manifestRevision, pending, differences, revisions } = await get('/manage/migrations/status', {}, { signal })
  return [
    head('Migrations', { over: 'Service', under: 'What was applied, what waits, and where tables are not what is declared.' }),
    h('section', { class: 'panel', 'aria-label': 'State' }, facts([['State', h('span', { class: `chip ${status === 'UP_TO_DATE' ? 'UP' : status}` }, status)], ['Extension', extensionVersion], ['Revision of the manifests', value(manifestRevision, 'integer')]])),
    h('h2', null, 'Waiting'),
    pending.length === 0 ? empty('Nothing waits: all that was declared is there.')
      : h('ul', { class: 'stack' }, pending.map((one) => h('li', { class: 'panel stack' }, h('p', null, h('span', { class: `chip ${one.status}` }, one.status), ' ', one.what),
        h('p', { class: 'muted' }, one.why), one.reason && h('p', { class: 'fault' }, one.reason), one.hint && h('p', { class: 'hint' }, one.hint), statements(one.statements)))),
    differences.length > 0 && [h('h2', null, 'Differences'), h('ul', { class: 'stack' }, differences.map((one) =>
      h('li', { class: 'panel' }, h('strong', null, [one.entity, one.field].filter(Boolean).join('.')), ' ', one.message, h('p', { class: 'hint' }, one.hint))))],
    h('h2', null, 'Applied'),
    h('ul', { class: 'stack' }, revisions.map((one) => h('li', { class: 'panel stack' }, h('p', null, h('strong', null, `Revision ${one.revision}`), ' · ', time(one.appliedAt), h('span', { class: 'muted' }, ` · ${one.extensionVersion}`)), statements(one.statements))))
  ]
}

export const show = ({ parts: [, page], signal }) => page === 'migrations' ? migrations(signal) : health(signal)
