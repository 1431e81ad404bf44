// What the flows do in each of the two examples, as data.

import { SCRIPT } from './browser.mjs'

const text = (most) => SCRIPT.slice(0, most)

export const EXAMPLES = {
  billing: {
    roles: { one: 'Viewer', other: 'Sales' },
    // no references: faults, CSV, deletion
    plain: {
      collection: 'customers', single: 'customer', label: 'name', most: 200, text: 'city',
      wrong: { email: 'no address' }, right: { email: 'a@b.example' }, fault: 'creditLimit', faulty: '-1',
      csv: ['name,city,active,creditLimit', '"Nine, & {who}","He said ""no""",true,10.50', 'Ten {who},,no,']
    },
    // with a reference, an enum, a version
    linked: {
      collection: 'invoices', single: 'invoice', label: 'number', fields: { total: '12345678901.10', note: SCRIPT },
      shown: '12,345,678,901.10', reference: 'customer', enum: ['status', 'DRAFT'], column: 'Note',
      edit: ['currency', 'DKK'], faster: { note: 'faster' }, sort: 'Total',
      make: (name, ids) => ({ number: name, relationships: { customer: ['customers', ids.customers] } })
    },
    oneOf: {
      collection: 'lineItems', label: 'description', fields: { position: '7', quantity: '2.125', unitPrice: '3' },
      reference: ['invoice', 'invoices', 'number'], field: 'billable', kind: 'servicepackages', of: ['servicePackages', 'name'],
      title: 'Billable'
    },
    members: { collection: 'invoices', relationship: 'tags', title: 'Tags', of: 'tags', label: 'name' },
    history: { collection: 'tags', label: 'name', changes: [{ colour: '#000001' }, { colour: '#000002' }] },
    // in an order in which all that is needed is there
    scripts: [
      ['customers', { name: text(200), city: text(100), email: '<img/onerror=alert(1)>@b' }],
      ['products', { sku: text(40), name: text(200), unitPrice: 1 }],
      ['servicePackages', { code: text(40), name: text(200), description: SCRIPT, monthlyFee: 1 }],
      ['invoices', { number: text(40), note: SCRIPT }, { customer: ['customers'] }],
      ['lineItems', { position: 1, quantity: 1, unitPrice: 1, description: SCRIPT }, { invoice: ['invoices'], billable: ['products'] }],
      ['payments', { amount: 1, method: 'CASH', paidOn: '2026-01-31', reference: text(140) }, { invoice: ['invoices'] }],
      ['tags', { name: text(50) }]
    ]
  },
  tracker: {
    roles: { one: 'Guest', other: 'Member' },
    plain: {
      collection: 'labels', single: 'label', label: 'name', most: 30, text: 'name',
      wrong: { colour: 'red' }, right: { colour: '#00ff00' }, fault: 'colour', faulty: 'blue',
      csv: ['name,colour', '"Nine, & {who}",#000009', 'Ten {who},']
    },
    linked: {
      collection: 'projects', single: 'project', label: 'name', fields: { key: '{KEY}' }, shown: 'PLANNED', reference: 'lead',
      enum: ['status', 'PLANNED'], column: 'Created by', edit: ['status', 'DONE'], faster: { name: 'faster' }, sort: 'Key',
      make: (name, ids, key) => ({ name, key })
    },
    oneOf: {
      collection: 'attachments', label: 'name', fields: { address: 'https://a.example/<b>' },
      field: 'of', kind: 'comments', of: ['comments', 'text'], title: 'Of', needsDepartment: true
    },
    members: { collection: 'labels', relationship: 'tasks', title: 'Tasks', of: 'tasks', label: 'title' },
    history: { collection: 'projects', label: 'name', changes: [{ status: 'RUNNING' }, { status: 'DONE' }], more: { key: 'HIST' } },
    restored: { collection: 'projects', members: 'tasks' },
    scripts: [
      ['projects', { key: 'SCRIPTS', name: text(100) }],
      ['labels', { name: text(30) }],
      ['tasks', { title: text(200), text: SCRIPT }, { project: ['projects'] }],
      ['comments', { text: SCRIPT }, { task: ['tasks'] }],
      ['attachments', { name: text(200), address: `https://a.example/${SCRIPT}` }, { of: ['tasks'] }]
    ]
  }
}

/** Makes the resources of a list, each with references to those before it; returns ids by collection. */
export async function makeAll(api, token, list) {
  const ids = {}
  for (const [collection, attributes, links = {}] of list) {
    const relationships = Object.fromEntries(Object.entries(links).map(([name, [of]]) =>
      [name, { data: { type: of.toLowerCase(), id: ids[of] } }]))
    const body = { data: { type: collection.toLowerCase(), attributes, relationships } }
    ids[collection] = (await api('POST', `/api/v1/${collection}`, { token, body })).data.id
  }
  return ids
}
