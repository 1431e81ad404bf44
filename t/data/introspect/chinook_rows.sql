-- A few rows of our own invention for chinook.sql.

insert into artist values (1, 'The Tide Tables'), (2, 'Nora Quay');
insert into album values (1, 'Low Water', 1), (2, 'Letters Home', 2);
insert into genre values (1, 'Folk');
insert into media_type values (1, 'MPEG audio file');
insert into track (track_id, name, album_id, media_type_id, genre_id, milliseconds, unit_price) values
    (1, 'Harbour Lights', 1, 1, 1, 213000, 0.99), (2, 'Second Post', 2, 1, 1, 187500, 1.29);
insert into employee (employee_id, last_name, first_name, title) values (1, 'Lund', 'Ida', 'Sales Support');
insert into customer (customer_id, first_name, last_name, city, country, email, support_rep_id) values
    (1, 'Karen', 'Hansen', 'Bergen', 'Norway', 'karen@example.com', 1),
    (2, 'Luis', 'Prado', 'Lisboa', 'Portugal', 'luis@example.com', 1);
insert into invoice (invoice_id, customer_id, invoice_date, billing_city, billing_country, total) values
    (1, 2, '2026-11-02', 'Lisboa', 'Portugal', 1.29), (2, 1, '2026-11-20 09:15', 'Bergen', 'Norway', 2.28);
insert into invoice_line values (1, 1, 2, 1.29, 1), (2, 2, 1, 0.99, 1), (3, 2, 2, 1.29, 1);
